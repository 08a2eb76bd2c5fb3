package revision_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/repo/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/cluster"
)

// chartDir is a directory of the test's own with charts of some versions.
func chartDir(t testing.TB, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, version := range versions {
		addCharts(t, dir, version)
	}
	return dir
}

func addCharts(t testing.TB, dir, version string) {
	t.Helper()
	if err := os.Symlink(filepath.Join(cluster.Charts(t), version), filepath.Join(dir, version)); err != nil {
		t.Fatal(err)
	}
}

// An alias stands for the newest version that there is, and moves when there is a newer one.
func TestVersionsFollowTheCharts(t *testing.T) {
	t.Parallel()
	dir := chartDir(t, "v1.24.0", "v1.31.0")
	w := newHub(t)
	w.operate(t, "--chart-dir", dir)
	w.keepServing(t)
	alias := revisionBased("alias", hubNamespace, "v1.31-latest", 0)
	newest := inPlace("newest", hubNamespace, "")
	exact := inPlace("exact", hubNamespace, "v1.31.0")
	w.make(t, alias, newest, exact)
	runs := func(istio *v1.Istio, revision, version string) {
		t.Helper()
		until(t, w, istio, func(istio *v1.Istio) error {
			if istio.Status.ActiveRevisionName != revision || istio.Status.State != v1.StateHealthy {
				return fmt.Errorf("it is %s with %q", istio.Status.State, istio.Status.ActiveRevisionName)
			}
			return nil
		})
		active := makeRevision(revision, "", "")
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(active), active); err != nil || active.Spec.Version != version {
			t.Errorf("IstioRevision %s is of %s, want %s: %v", revision, active.Spec.Version, version, err)
		}
	}
	runs(alias, "alias-v1-31-0", "v1.31.0")
	runs(newest, "newest", "v1.31.0")
	runs(exact, "exact", "v1.31.0")
	old := makeRevision("alias-v1-31-0", "", "")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}

	t.Log("a newer patch appears")
	addCharts(t, dir, "v1.31.1")
	runs(alias, "alias-v1-31-1", "v1.31.1")
	runs(newest, "newest", "v1.31.1")
	runs(exact, "exact", "v1.31.0")
	eventually(t, func(ctx context.Context) error { return w.isGone(ctx, old) })
}

// chartServer is a Helm repository on this machine.
type chartServer struct {
	*httptest.Server
	requests atomic.Int64
}

func serveCharts(t testing.TB, versions ...string) *chartServer {
	t.Helper()
	dir, index := t.TempDir(), repo.NewIndexFile()
	for _, version := range versions {
		for _, name := range []string{"base", "istiod"} {
			file, digest := pack(t, dir, name, version)
			metadata := &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: strings.TrimPrefix(version, "v")}
			if err := index.MustAdd(metadata, filepath.Base(file), "", digest); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &chartServer{}
	files := http.FileServer(http.Dir(dir))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// pack makes an archive of one of Istio's charts, with its version put in as for a release.
func pack(t testing.TB, dir, name, version string) (file, digest string) {
	t.Helper()
	loaded, err := loader.LoadDir(filepath.Join(cluster.Charts(t), version, name))
	if err != nil {
		t.Fatal(err)
	}
	loaded.Metadata.Version = strings.TrimPrefix(version, "v")
	if file, err = chartutil.Save(loaded, dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, fmt.Sprintf("%x", sha256.Sum256(data))
}

// Charts come from a Helm repository, and from what was kept of it when it is gone.
func TestChartRepository(t *testing.T) {
	t.Parallel()
	server := serveCharts(t, "v1.24.0", "v1.26.0")
	w := newHub(t)
	flags := []string{"--chart-repository", server.URL, "--chart-cache-dir", t.TempDir()}
	w.operate(t, flags...)
	w.keepServing(t)
	first := inPlace("first", hubNamespace, "")
	w.make(t, first)
	ready(t, w, first)
	if releases, err := w.releases(t.Context(), hubNamespace); err != nil || releases["first-istiod"] != "deployed v1.26.0" {
		t.Errorf("the releases are %v: %v", releases, err)
	}
	if server.requests.Load() == 0 {
		t.Error("nobody has asked for the charts")
	}

	t.Log("the repository goes, and the operator starts anew")
	server.Close()
	w.operator.Kill()
	w.operate(t, flags...)
	second, unknown := makeRevision("second", hubNamespace, "v1.26.0"), makeRevision("unknown", hubNamespace, "v1.24.0")
	w.make(t, second, unknown)
	ready(t, w, second)
	got := says(t, w, unknown, v1.ConditionReconciled, v1.ReasonChartsUnavailable)
	if !strings.Contains(got.Message, strings.TrimPrefix(server.URL, "http://")) || !strings.Contains(got.Message, "check --chart-repository") {
		t.Errorf("it says %s", got.Message)
	}
	ready(t, w, first)
}

// Istio's CRDs are kept as the charts bring them, and outlive all that uses them.
func TestCRDs(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	w.operate(t)
	w.keepServing(t)
	old := makeRevision("old", hubNamespace, "v1.24.0")
	w.make(t, old)
	ready(t, w, old)
	crd := func(name string) installed { return installed{w, customs, client.ObjectKey{Name: name}} }
	edited, deleted := crd("gateways.networking.istio.io"), crd("sidecars.networking.istio.io")
	before := map[installed]map[string]any{}
	for _, object := range []installed{edited, deleted} {
		live, err := object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before[object] = content(live)
	}
	edited.edit(t, set(nil, "metadata", "labels", "app.kubernetes.io/part-of"))
	edited.edit(t, set(nil, "spec", "names", "shortNames"))
	live, err := deleted.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.delete(t, live)
	for object, want := range before {
		object.becomes(t, want)
	}

	t.Log("a newer revision brings newer ones, which do not go with it")
	newer := makeRevision("newer", hubNamespace, "v1.31.0")
	w.make(t, newer)
	ready(t, w, newer)
	came := crd("trafficextensions.extensions.istio.io")
	if _, err := came.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.delete(t, newer)
	w.delete(t, old)
	for _, object := range []installed{edited, deleted, came} {
		if _, err := object.get(t.Context()); err != nil {
			t.Error(err)
		}
	}
	eventually(t, func(ctx context.Context) error {
		releases, err := w.releases(ctx, hubNamespace)
		if len(releases) > 0 {
			err = errors.Join(err, fmt.Errorf("left are the releases %v", releases))
		}
		return err
	})
	readers := installed{w, accounts, client.ObjectKey{Namespace: hubNamespace, Name: "istio-reader-service-account"}}
	if _, err := readers.get(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("the account of readers is still there: %v", err)
	}
}
