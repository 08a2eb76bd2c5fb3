package charts

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRegistryCredentials(t *testing.T) {
	s := serveRegistry(t, true)
	s.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", ""))
	s.on(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "captain" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="harbour"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	const remedy = "--chart-registry-config"
	_, err := s.open(t).Versions(t.Context())
	wantError(t, err, "ask registry "+s.options.Repository, "credential", remedy)

	s.options.RegistryConfig = filepath.Join(t.TempDir(), "config.json")
	login := func(credentials string) {
		put(t, s.options.RegistryConfig, fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`,
			strings.TrimPrefix(s.URL, "https://"), base64.StdEncoding.EncodeToString([]byte(credentials))))
	}
	login("captain:secret")
	source := s.open(t)
	versions, err := source.Versions(t.Context())
	if diff := cmp.Diff([]string{"v1.24.0"}, versions); err != nil || diff != "" {
		t.Error(err, diff)
	}
	load(t, source, "istiod", "v1.24.0")

	login("captain:other-secret")
	_, err = source.Load(t.Context(), "base", "v1.24.0")
	wantError(t, err, "load chart base v1.24.0", "401", remedy)
	login("secret without a name")
	_, err = source.Load(t.Context(), "base", "v1.24.0")
	wantError(t, err, "load chart base v1.24.0", "the credentials for the registry cannot be read", remedy)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("a secret is told: %v", err)
	}
	put(t, s.options.RegistryConfig, "{")
	_, err = source.Load(t.Context(), "base", "v1.24.0")
	wantError(t, err, "read the credentials for the registry", remedy)
}

func TestRegistryTagsThatAreNoVersions(t *testing.T) {
	s := serveRegistry(t, false)
	for _, tag := range []string{"1.24.0", "latest", "1.25", "1.26-alpha.0a1b2c", "1.27.0+build"} {
		s.publish("istiod", tag, small(t, "istiod", "v1.24.0", ""))
	}
	versions, err := s.open(t).Versions(t.Context())
	if diff := cmp.Diff([]string{"v1.24.0"}, versions); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
