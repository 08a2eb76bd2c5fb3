package revision_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// An alias stands for the newest version that there is, and moves when there is a newer one. That is an upgrade like any
// other, not a surprise for the control plane that runs.
func TestVersionsFollowTheCharts(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, namespace := shortName(t), w.namespace(t)
	// There are more of them when the test has run before.
	patches, err := filepath.Glob(filepath.Join(w.charts, "v1.31.*"))
	if err != nil {
		t.Fatal(err)
	}
	before, after := fmt.Sprint("v1.31.", len(patches)-1), fmt.Sprint("v1.31.", len(patches))
	called := func(version string) string { return name + "-" + strings.ReplaceAll(version, ".", "-") }
	alias := harness.Create(t, w, revisionBased(name, namespace, "v1.31-latest", time.Hour))
	tag := harness.Create(t, w, makeTag(name+"-tag", v1.IstioKind, name))
	newest := harness.Create(t, w, inPlace(name+"-newest", namespace, ""))
	exact := harness.Create(t, w, inPlace(name+"-exact", namespace, "v1.31.0"))
	runs := func(istio *v1.Istio, revision, version string) {
		t.Helper()
		until(t, w, istio, func(istio *v1.Istio) error {
			if istio.Status.ActiveRevisionName != revision || istio.Status.State != v1.StateHealthy {
				return fmt.Errorf("it is %s with %q", istio.Status.State, istio.Status.ActiveRevisionName)
			}
			active := makeRevision(revision, "", "")
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(active), active); err != nil || active.Spec.Version != version {
				return fmt.Errorf("IstioRevision %s is of %s, want %s: %w", revision, active.Spec.Version, version, err)
			}
			return nil
		})
	}
	runs(alias, called(before), before)
	w.points(t, tag, called(before))
	runs(newest, newest.Name, before)
	runs(exact, exact.Name, "v1.31.0")
	old := ready(t, w, makeRevision(called(before), "", ""))

	t.Log("a newer patch appears")
	if err := os.Symlink(filepath.Join(cluster.Charts(t), "v1.31.1"), filepath.Join(w.charts, after)); err != nil {
		t.Fatal(err)
	}
	runs(alias, called(after), after)
	w.points(t, tag, called(after))
	runs(newest, newest.Name, after)
	runs(exact, exact.Name, "v1.31.0")
	until(t, w, makeRevision(old.Name, "", ""), func(now *v1.IstioRevision) error {
		if now.UID != old.UID || now.Generation != old.Generation {
			return errors.New("the old revision was changed")
		}
		return nil
	})
}

// serveCharts is a Helm repository on this machine.
func serveCharts(t testing.TB, versions ...string) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	publishCharts(t, dir, nil, versions...)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server
}

// publishCharts makes a directory a Helm repository. What alter does to a chart is published with it.
func publishCharts(t testing.TB, dir string, alter func(*chart.Chart), versions ...string) {
	t.Helper()
	index := repo.NewIndexFile()
	for _, version := range versions {
		for _, name := range []string{"base", "istiod"} {
			file, digest := pack(t, dir, name, version, alter)
			metadata := &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: strings.TrimPrefix(version, "v")}
			if err := index.MustAdd(metadata, filepath.Base(file), "", digest); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pack makes an archive of one of Istio's charts, with its version put in as for a release.
func pack(t testing.TB, dir, name, version string, alter func(*chart.Chart)) (file, digest string) {
	t.Helper()
	loaded, err := loader.LoadDir(filepath.Join(cluster.Charts(t), version, name))
	if err != nil {
		t.Fatal(err)
	}
	loaded.Metadata.Version = strings.TrimPrefix(version, "v")
	if alter != nil {
		alter(loaded)
	}
	if file, err = chartutil.Save(loaded, dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, fmt.Sprintf("%x", sha256.Sum256(data))
}
