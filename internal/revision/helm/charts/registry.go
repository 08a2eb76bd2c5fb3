package charts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
	pulled, err := client.Pull(r.path + "/" + name + ":" + strings.TrimPrefix(version, "v"))
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return nil, missingChartError("the registry has no such chart; check --chart-repository")
	case errors.Is(err, content.ErrMismatchedDigest):
		return nil, errors.New("the download does not match the digest in the manifest and is discarded; " +
			"the registry has to be repaired")
	case err != nil:
		return nil, registryError(err)
	}
	return pulled.Chart.Data, nil
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
