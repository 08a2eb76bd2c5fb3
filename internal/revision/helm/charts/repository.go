package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/yaml"
)

// repository is a Helm repository. Helm's own client takes no context, so that a download could not be stopped.
type repository struct {
	url    string
	client *http.Client

	verification verification
}

func (r *repository) String() string { return "repository " + r.url }

func (r *repository) versions(ctx context.Context) ([]string, error) {
	index, err := r.index(ctx)
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, entry := range index.Entries[istiod] {
		versions = append(versions, entryVersion(entry))
	}
	return versions, nil
}

func (r *repository) archive(ctx context.Context, name, version string) ([]byte, error) {
	index, err := r.index(ctx)
	if err != nil {
		return nil, err
	}
	for _, entry := range index.Entries[name] {
		if entryVersion(entry) == version {
			return r.entryArchive(ctx, entry)
		}
	}
	return nil, missingChartError("the index of the repository has no such chart; check --chart-repository")
}

func (r *repository) entryArchive(ctx context.Context, entry *repo.ChartVersion) ([]byte, error) {
	if len(entry.URLs) == 0 {
		return nil, errors.New("the index of the repository has no URL for the chart")
	}
	want := "sha256:" + strings.TrimPrefix(entry.Digest, "sha256:")
	if !sha256Digest.MatchString(want) {
		return nil, errors.New("the index of the repository has no SHA-256 digest for the chart, so that a download could not be checked")
	}
	location, err := repo.ResolveReferenceURL(r.url, entry.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("the URL in the index of the repository: %w", err)
	}
	archive, err := r.get(ctx, location)
	if err != nil {
		return nil, err
	}
	if got := digestOf(archive); got != want {
		return nil, fmt.Errorf("the download has digest %s, but the index says %s, and is discarded; "+
			"the repository has to be repaired", got, want)
	}
	return archive, r.verify(ctx, archive, location)
}

// verify checks an archive by the provenance file beside it.
func (r *repository) verify(ctx context.Context, archive []byte, location string) error {
	keys := r.verification.keyring
	if keys == nil {
		return nil
	}
	beside, err := url.Parse(location)
	if err != nil {
		return fmt.Errorf("the URL in the index of the repository: %w", err)
	}
	file := path.Base(beside.Path)
	beside.Path, beside.RawPath = beside.Path+".prov", ""
	prov, err := r.get(ctx, beside.String())
	var missing *statusError
	if err != nil && (!errors.As(err, &missing) || missing.code != http.StatusNotFound) {
		return err
	}
	return keys.verify(archive, prov, file)
}

func (r *repository) index(ctx context.Context) (*repo.IndexFile, error) {
	url, err := repo.ResolveReferenceURL(r.url, "index.yaml")
	if err != nil {
		return nil, err
	}
	text, err := r.get(ctx, url)
	if err != nil {
		return nil, err
	}
	index := &repo.IndexFile{}
	if err := yaml.Unmarshal(text, index); err != nil {
		return nil, &unreachableError{fmt.Errorf("%s is not the index of a Helm repository: %w", url, err)}
	}
	if index.APIVersion == "" {
		return nil, &unreachableError{fmt.Errorf("%s is not the index of a Helm repository: it has no apiVersion", url)}
	}
	return index, nil
}

func (r *repository) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, &unreachableError{err}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, &unreachableError{&statusError{url, response.StatusCode, response.Status}}
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, &unreachableError{fmt.Errorf("get %s: %w", url, err)}
	}
	return data, nil
}

// statusError is an answer that is not OK.
type statusError struct {
	url  string
	code int
	text string
}

func (e *statusError) Error() string { return "get " + e.url + ": " + e.text }

// entryVersion is Fairlead's name for the version of an entry, or "" for an entry that is removed or malformed.
func entryVersion(entry *repo.ChartVersion) string {
	if entry == nil || entry.Metadata == nil || entry.Removed {
		return ""
	}
	return "v" + strings.TrimPrefix(entry.Version, "v")
}
