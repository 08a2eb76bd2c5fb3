package revision_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

// tamper puts an object into the chart of istiod that nobody has asked for.
func tamper(c *chart.Chart) {
	if c.Name() == "istiod" {
		c.Templates = append(c.Templates, &common.File{Name: "templates/added.yaml", Data: []byte(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: added, namespace: {{ .Release.Namespace }}}\n")})
	}
}

// Somebody replaces the chart of istiod in the repository, and the operator is restarted and has nothing in its cache. The
// cluster knows which chart was installed.
func TestChartThatChangesUnderItsVersion(t *testing.T) {
	t.Parallel()
	const version = "v1.26.0"
	w, dir := newHub(t), t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	restart := func() {
		w.operate(t, "--chart-repository", server.URL, "--chart-cache-dir", t.TempDir(), "--install-crds=false")
	}
	publishCharts(t, dir, nil, version)
	restart()
	w.keepServing(t)
	istio, tag := inPlace("mesh", hubNamespace, version), makeTag("prod", v1.IstioKind, "mesh")
	istio.Spec.Values = v1.Values{"base": withoutCRDs()}
	w.make(t, istio, tag)
	revision := ready(t, w, makeRevision("mesh", "", ""))
	w.points(t, tag, revision.Name)
	recorded := digestOfChart(t, revision, "istiod", version)
	digestOfChart(t, revision, "base", version)
	releases := releasesOf(t, w)

	w.operator.Kill()
	publishCharts(t, dir, tamper, version)
	restart()
	got := says(t, w, revision, v1.ConditionReconciled, v1.ReasonChartChanged)
	accept := got.Message[strings.LastIndex(got.Message, "=")+1:]
	tampered := strings.TrimSuffix(accept, "`")
	for _, part := range []string{
		"chart istiod " + version + " of repository " + server.URL + " has digest sha256:", "but " + recorded + " was installed",
		"`kubectl annotate --overwrite istiorevision mesh " + v1.AnnotationAcceptChartDigest + "=sha256:",
	} {
		if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, part) {
			t.Errorf("it says %s: %s\nwant %s in it", got.Status, got.Message, part)
		}
	}
	says(t, w, tag, v1.ConditionReconciled, v1.ReasonChartChanged)
	t.Log("what runs goes on, and nothing is written")
	ready(t, w, revision)
	ready(t, w, istio)
	if digestOfChart(t, revision, "istiod", version) != recorded {
		t.Errorf("recorded is %v", revision.Status.Charts)
	}
	if now := releasesOf(t, w); !slices.Equal(releases, now) {
		t.Errorf("the releases were %v and are %v", releases, now)
	}
	added := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "added"}}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(added), added); !apierrors.IsNotFound(err) {
		t.Errorf("the chart was installed: %v", err)
	}
	for _, command := range []string{"plan istio mesh", "status istio mesh", "status istiorevision mesh"} {
		said := w.fairlead(t, append(strings.Fields(command), "-o", "wide")...)
		if said.code != 1 || !strings.Contains(said.stdout, tampered) || !strings.Contains(said.stdout, recorded) {
			t.Errorf("%s: exit code %d\n%s%s", command, said.code, said.stdout, said.stderr)
		}
	}

	t.Log("the repository is repaired")
	publishCharts(t, dir, nil, version)
	says(t, w, revision, v1.ConditionReconciled, v1.ReasonReconciled)
	w.points(t, tag, revision.Name)

	t.Log("the new chart is accepted")
	w.operator.Kill()
	publishCharts(t, dir, tamper, version)
	restart()
	says(t, w, revision, v1.ConditionReconciled, v1.ReasonChartChanged)
	harness.Change(t, w, revision, func(r *v1.IstioRevision) {
		r.Annotations = map[string]string{v1.AnnotationAcceptChartDigest: tampered}
	})
	until(t, w, revision, func(r *v1.IstioRevision) error {
		if c := condition(r, v1.ConditionReconciled); c.Status != metav1.ConditionTrue {
			return errors.New("it is not installed")
		}
		return w.Get(t.Context(), client.ObjectKeyFromObject(added), added)
	})
	if got := digestOfChart(t, revision, "istiod", version); got != tampered {
		t.Errorf("recorded is %s, want %s", got, tampered)
	}
	w.points(t, tag, revision.Name)
}

// digestOfChart is what the status of a revision has recorded of a chart.
func digestOfChart(t testing.TB, revision *v1.IstioRevision, name, version string) string {
	t.Helper()
	for _, recorded := range revision.Status.Charts {
		if recorded.Name == name && recorded.Version == version {
			return recorded.Digest
		}
	}
	t.Errorf("chart %s %s is not recorded: %v", name, version, revision.Status.Charts)
	return ""
}

// releasesOf are the records of all releases, by their names.
func releasesOf(t testing.TB, w *world) []string {
	t.Helper()
	var list corev1.SecretList
	if err := w.List(t.Context(), &list, client.InNamespace(hubNamespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Name+" "+secret.ResourceVersion)
	}
	return names
}

// chartsAreRecordedFirst: an operator that is killed at its first write for a release has recorded the chart before.
func (w *world) chartsAreRecordedFirst(t *testing.T) {
	revision := makeRevision("recorded-first", hubNamespace, "v1.26.0")
	var looked atomic.Bool
	seen := make(chan error, 1)
	config := rest.CopyConfig(w.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") && looked.CompareAndSwap(false, true) {
				seen <- w.recorded(r.Context(), revision.Name, "istiod")
			}
			return next.RoundTrip(r)
		})
	})
	operateWithin(t, config)
	w.make(t, revision)
	says(t, w, revision, v1.ConditionReconciled, v1.ReasonReconciled)
	select {
	case err := <-seen:
		if err != nil {
			t.Error(err)
		}
	default:
		t.Error("no record of the release was written")
	}
	w.delete(t, revision)
}

func (w *world) recorded(ctx context.Context, revision, name string) error {
	now := makeRevision(revision, "", "")
	if err := w.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
		return err
	}
	if !slices.ContainsFunc(now.Status.Charts, func(c v1.ChartDigest) bool { return c.Name == name && c.Digest != "" }) {
		return fmt.Errorf("chart %s is not recorded: %v", name, now.Status.Charts)
	}
	return nil
}
