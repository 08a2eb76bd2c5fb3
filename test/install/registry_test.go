package install_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	oci "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// registry is a private OCI registry on this machine: it has a CA of its own, and wants credentials for everything.
type registry struct {
	*httptest.Server
	host string
	// caFile is what clients trust, and configDir has the config.json that a `docker login` writes.
	caFile, configDir string
}

const registryUser, registryPassword = "harbour", "lighthouse"

func startRegistry(t testing.TB) *registry {
	t.Helper()
	handler := oci.New(oci.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != registryUser || password != registryPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	r := &registry{Server: server, host: strings.TrimPrefix(server.URL, "https://"), caFile: filepath.Join(dir, "ca.crt"), configDir: dir}
	config, err := json.Marshal(map[string]any{"auths": map[string]any{
		r.host: map[string]any{"auth": base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	write(t, filepath.Join(dir, "config.json"), config)
	return r
}

func write(t testing.TB, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// client is that of a node.
func (r *registry) client() *auth.Client {
	credential := auth.Credential{Username: registryUser, Password: registryPassword}
	return &auth.Client{Client: r.Client(), Credential: auth.StaticCredential(r.host, credential)}
}

// istioCharts packages stand-ins for Istio's charts of some versions into a directory.
func istioCharts(t testing.TB, versions ...string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, version := range versions {
		for _, name := range []string{"base", "istiod"} {
			chart, err := loader.LoadDir(filepath.Join(root, "test", "upgrade", "testdata", "charts", "v1.26.0", name))
			if err != nil {
				t.Fatal(err)
			}
			chart.Metadata.Version, chart.Metadata.AppVersion = version, version
			if _, err := chartutil.Save(chart, dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
