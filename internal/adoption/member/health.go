package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/passage"
)

var errUnauthorized = errors.New("the API server does not accept the token")

// checkServing asks the API server of a cluster whether it serves, and which version it is of.
func checkServing(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return "", errUnauthorized
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the API server responds with %s", response.Status)
	}
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(response.Body, maxVersionSize)).Decode(&info); err != nil {
		return "", fmt.Errorf("read the version: %w", err)
	}
	if len(info.GitVersion) > maxVersionLength {
		return "", fmt.Errorf("read the version: it has %d characters", len(info.GitVersion))
	}
	return passage.Printable(info.GitVersion), nil
}

const (
	// maxVersionSize is more than any answer that makes sense.
	maxVersionSize = 64 << 10
	// maxVersionLength is more than any version that makes sense. It is shown, and stored in the status of the Cluster.
	maxVersionLength = 128
)
