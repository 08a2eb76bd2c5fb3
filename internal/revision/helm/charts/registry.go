package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helm "helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// registry is a path in an OCI registry, under which each chart is a repository and each version a tag.
type registry struct {
	path      string
	plainHTTP bool
	config    string
	transport http.RoundTripper

	verification verification
}

func (r *registry) String() string { return "registry oci://" + r.path }

func (r *registry) versions(ctx context.Context) ([]string, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := client.Tags(r.path + "/" + istiod)
	if err != nil {
		return nil, registryError(err)
	}
	for i, tag := range tags {
		tags[i] = "v" + tag
	}
	return tags, nil
}

// archive leaves the check of the digest to Helm, which refuses a download that differs from its manifest.
func (r *registry) archive(ctx context.Context, name, version string) ([]byte, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	file := name + "-" + strings.TrimPrefix(version, "v") + ".tgz"
	pulled, err := client.Pull(r.path+"/"+name+":"+strings.TrimPrefix(version, "v"),
		helm.PullOptWithProv(r.verification.keyring != nil), helm.PullOptIgnoreMissingProv(true))
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return nil, missingChartError("the registry has no such chart; check --chart-repository")
	case errors.Is(err, content.ErrMismatchedDigest):
		return nil, errors.New("the download does not match the digest in the manifest and is discarded; " +
			"the registry has to be repaired")
	case err != nil:
		return nil, registryError(err)
	}
	return pulled.Chart.Data, r.verify(ctx, client, name, file, pulled)
}

// verify checks the provenance file in a manifest, and the signatures of the manifest.
func (r *registry) verify(ctx context.Context, client *helm.Client, name, file string, pulled *helm.PullResult) error {
	if keys := r.verification.keyring; keys != nil {
		if err := keys.verify(pulled.Chart.Data, pulled.Prov.Data, file); err != nil {
			return err
		}
	}
	if key := r.verification.cosign; key != nil {
		manifest := digestOf(pulled.Manifest.Data)
		signatures, err := r.cosignSignatures(ctx, client, name, manifest)
		if err != nil {
			return err
		}
		return key.verify(manifest, signatures)
	}
	return nil
}

// What cosign writes beside an artifact.
const (
	cosignMediaType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	cosignAnnotation = "dev.cosignproject.cosign/signature"
)

// cosignSignatures are those of a manifest; none if there are none.
func (r *registry) cosignSignatures(ctx context.Context, client *helm.Client, name, manifest string) ([]cosignSignature, error) {
	tag := signatureTag(manifest)
	pulled, err := helm.NewGenericClient(client).PullGeneric(r.path+"/"+name+":"+tag, helm.GenericPullOptions{})
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, registryError(err)
	}
	raw, err := content.FetchAll(ctx, pulled.MemoryStore, pulled.Manifest)
	if err != nil {
		return nil, registryError(err)
	}
	var stored ocispec.Manifest
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("the signatures of cosign under tag %s cannot be read: %w", tag, err)
	}
	// Signatures of several keys have the same payload.
	var signatures []cosignSignature
	for _, layer := range stored.Layers {
		if layer.MediaType != cosignMediaType {
			continue
		}
		payload, err := content.FetchAll(ctx, pulled.MemoryStore, layer)
		if err != nil {
			return nil, registryError(err)
		}
		signatures = append(signatures, cosignSignature{payload, layer.Annotations[cosignAnnotation]})
	}
	return signatures, nil
}

func registryError(err error) error {
	if strings.Contains(err.Error(), "failed to resolve credential") {
		// The rest of the message can quote credentials.
		return errors.New("the credentials for the registry cannot be read; check --chart-registry-config")
	}
	var response *errcode.ErrorResponse
	if errors.Is(err, auth.ErrBasicCredentialNotFound) ||
		errors.As(err, &response) && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("%s; check its credentials in --chart-registry-config", stableMessage(err))
	}
	return &unreachableError{err}
}

// client is created for each call, because Helm's takes no context: the transport has one.
func (r *registry) client(ctx context.Context) (*helm.Client, error) {
	options := []helm.ClientOption{
		helm.ClientOptHTTPClient(&http.Client{Transport: ContextTransport{ctx, r.transport}}),
		helm.ClientOptCredentialsFile(r.config),
		helm.ClientOptEnableCache(true),
	}
	if r.plainHTTP {
		options = append(options, helm.ClientOptPlainHTTP())
	}
	client, err := helm.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("read the credentials for the registry: %w; check --chart-registry-config", err)
	}
	return client, nil
}
