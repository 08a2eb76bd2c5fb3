package charts

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	oci "github.com/google/go-containerregistry/pkg/registry"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helm "helm.sh/helm/v4/pkg/registry"
	"helm.sh/helm/v4/pkg/repo/v1"
)

func TestMain(m *testing.M) {
	// Helm would otherwise look for the credentials of whoever runs the tests.
	config, err := os.MkdirTemp("", "config-")
	if err != nil {
		log.Fatal(err)
	}
	for _, variable := range []string{"DOCKER_CONFIG", "HELM_CONFIG_HOME"} {
		if err := os.Setenv(variable, config); err != nil {
			log.Fatal(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(config)
	os.Exit(code)
}

// served is a repository or registry on this machine.
type served struct {
	*httptest.Server
	options Options
	// publish puts a chart there, in the place of one with the same name and version.
	publish func(name, version string, archive []byte)
	// publishSigned does so with a provenance file, unless that is nil, and tells the digest of the manifest in a registry.
	publishSigned func(name, version string, archive, prov []byte) (manifest string)
	// pathOf tells where an archive is downloaded from.
	pathOf func(name, version string, archive []byte) string

	mu        sync.Mutex
	requests  int
	intercept func(w http.ResponseWriter, r *http.Request) bool
}

// eachKind runs a test against every kind of place that charts can be downloaded from.
func eachKind(t *testing.T, test func(t *testing.T, s *served)) {
	kinds := map[string]func(testing.TB, bool) *served{"repository": serveRepository, "registry": serveRegistry}
	for kind, serve := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, serve(t, false)) })
		t.Run(kind+" over TLS", func(t *testing.T) { test(t, serve(t, true)) })
	}
}

func serveRepository(t testing.TB, overTLS bool) *served {
	s, dir := &served{}, t.TempDir()
	s.start(t, http.StripPrefix("/charts", http.FileServer(http.Dir(dir))), overTLS)
	s.options.Repository = s.URL + "/charts"
	s.pathOf = func(name, version string, _ []byte) string {
		return "/charts/" + name + "-" + strings.TrimPrefix(version, "v") + ".tgz"
	}
	index := repo.NewIndexFile()
	s.publish = func(name, version string, archive []byte) {
		file := filepath.Base(s.pathOf(name, version, nil))
		put(t, filepath.Join(dir, file), string(archive))
		for i, entry := range index.Entries[name] {
			if "v"+entry.Version == version {
				index.Entries[name] = append(index.Entries[name][:i], index.Entries[name][i+1:]...)
				break
			}
		}
		digest := strings.TrimPrefix(digestOf(archive), "sha256:")
		if err := index.MustAdd(metadata(name, version), file, "", digest); err != nil {
			t.Fatal(err)
		}
		if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.publishSigned = func(name, version string, archive, prov []byte) string {
		s.publish(name, version, archive)
		if prov != nil {
			put(t, filepath.Join(dir, filepath.Base(s.pathOf(name, version, nil))+".prov"), string(prov))
		}
		return ""
	}
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func serveRegistry(t testing.TB, overTLS bool) *served {
	s := &served{}
	s.start(t, oci.New(oci.Logger(log.New(io.Discard, "", 0))), overTLS)
	path := strings.TrimPrefix(strings.TrimPrefix(s.URL, "https://"), "http://") + "/istio/charts"
	s.options.Repository = "oci://" + path
	s.pathOf = func(name, _ string, archive []byte) string {
		return "/v2/istio/charts/" + name + "/blobs/" + digestOf(archive)
	}
	options := []helm.ClientOption{helm.ClientOptHTTPClient(s.Client())}
	if !overTLS {
		options = append(options, helm.ClientOptPlainHTTP())
	}
	client, err := helm.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	s.publishSigned = func(name, version string, archive, prov []byte) string {
		ref := path + "/" + name + ":" + strings.TrimPrefix(version, "v")
		pushed, err := client.Push(archive, ref, helm.PushOptStrictMode(false), helm.PushOptProvData(prov))
		if err != nil {
			t.Fatal(err)
		}
		return pushed.Manifest.Digest
	}
	s.publish = func(name, version string, archive []byte) { s.publishSigned(name, version, archive, nil) }
	return s
}

func (s *served) start(t testing.TB, handler http.Handler, overTLS bool) {
	s.options.CacheDir = filepath.Join(t.TempDir(), "cache")
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		intercept := s.intercept
		s.mu.Unlock()
		if intercept == nil || !intercept(w, r) {
			handler.ServeHTTP(w, r)
		}
	})
	if !overTLS {
		s.Server = httptest.NewServer(counted)
	} else {
		s.Server = httptest.NewTLSServer(counted)
		s.options.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		put(t, s.options.CAFile, string(ca))
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
}

// on answers requests itself where it says so; nil ends that.
func (s *served) on(intercept func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = intercept
}

// count is how many requests were made meanwhile.
func (s *served) count(during func()) int {
	s.mu.Lock()
	before := s.requests
	s.mu.Unlock()
	during()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests - before
}

// open gives what somebody has who has just started, with nothing but what is in the cache.
func (s *served) open(t testing.TB) *remote {
	t.Helper()
	source, err := New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	return source.(*remote)
}

func metadata(name, version string) *chart.Metadata {
	return &chart.Metadata{
		APIVersion: chart.APIVersionV2, Name: name, Version: strings.TrimPrefix(version, "v"), Type: "application",
	}
}

// small is an archive of a chart that has next to nothing in it.
func small(t testing.TB, name, version, description string) []byte {
	t.Helper()
	c := &chart.Chart{Metadata: metadata(name, version)}
	c.Metadata.Description = description
	return packed(t, c)
}

// full is an archive of a chart that has some of everything.
func full(t testing.TB, name, version string) []byte {
	t.Helper()
	dir := t.TempDir()
	chartFiles(t, dir, name, version)
	c, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return packed(t, c)
}

func packed(t testing.TB, c *chart.Chart) []byte {
	t.Helper()
	file, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, source Source, name, version string) *Chart {
	t.Helper()
	c, err := source.Load(t.Context(), name, version)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantError checks that an error tells all that it should.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got  %v\nwant %s in it", err, part)
		}
	}
}

// cached lists the files in the cache by their extension.
func (s *served) cached(t testing.TB) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(s.options.CacheDir, "helm", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		found[filepath.Ext(file)] = append(found[filepath.Ext(file)], file)
	}
	return found
}
