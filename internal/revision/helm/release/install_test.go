package release

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
)

// apiServer keeps objects by their path, and refuses to write those with a certain name.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	refused string
	writes  []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}
	fail := func(code int, reason metav1.StatusReason) {
		reply(code, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: "refused by the test",
		})
	}
	body, _ := io.ReadAll(r.Body)
	var sent map[string]any
	_ = yaml.Unmarshal(body, &sent)
	at := r.URL.Path
	if r.Method == http.MethodPost {
		name, _ := sent["metadata"].(map[string]any)["name"].(string)
		at = path.Join(at, name)
	}
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, r.Method+" "+strings.TrimPrefix(path.Base(at), "sh.helm.release.v1.harbour."))
	}
	known, found := s.objects[at]
	switch {
	case at == "/version":
		reply(200, map[string]any{"gitVersion": "v1.34.0"})
	case at == "/api":
		reply(200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case at == "/apis":
		reply(200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case at == "/api/v1":
		reply(200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"})
	case r.Method == http.MethodGet && path.Base(at) == "secrets":
		selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
		items := []any{}
		for key, object := range s.objects {
			stored := unstructured.Unstructured{Object: object}
			if path.Dir(key) == at && selector.Matches(labels.Set(stored.GetLabels())) {
				items = append(items, object)
			}
		}
		reply(200, map[string]any{"kind": "SecretList", "apiVersion": "v1", "items": items})
	case s.refused != "" && r.Method != http.MethodGet && path.Base(at) == s.refused:
		fail(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case r.Method == http.MethodPost, r.Method == http.MethodPut, r.Method == http.MethodPatch:
		s.objects[at] = sent
		reply(200, sent)
	case !found:
		fail(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodDelete:
		delete(s.objects, at)
		reply(200, known)
	default:
		reply(200, known)
	}
}

// newServer is a Manager, and the API server that it writes to.
func newServer(t *testing.T) (*Manager, *apiServer) {
	t.Helper()
	server := &apiServer{objects: map[string]map[string]any{}}
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: listener.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	m, err := New(config, mapper, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return m, server
}

func harbour(digest string, ships ...string) Spec {
	c := &chart.Chart{
		Metadata: &chart.Metadata{Name: "harbour", Version: "1.2.3", APIVersion: "v2"},
		Values:   map[string]any{"depth": 3.0},
	}
	for _, ship := range ships {
		c.Templates = append(c.Templates, &common.File{Name: "templates/" + ship + ".yaml", Data: []byte(fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {captain: {{ .Values.captain }}}\n", ship))})
	}
	return Spec{
		Name: "harbour", Namespace: "sea", Values: map[string]any{"captain": digest},
		Chart: &charts.Chart{Chart: c, Digest: digest},
		Owner: &metav1.OwnerReference{APIVersion: "a/v1", Kind: "Port", Name: "nantucket", UID: "1"},
	}
}

// recorded are the records of the release, in short.
func recorded(t *testing.T, m *Manager) []string {
	t.Helper()
	s, past, err := m.session(t.Context(), harbour("").key())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.loadObjects(past); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range past {
		var names []string
		for _, object := range r.objects {
			names = append(names, object.GetName())
		}
		slices.Sort(names)
		if !maps.Equal(map[string]any{"depth": 3.0}, r.Chart.Values) || len(r.Chart.Templates) > 0 || r.ApplyMethod != "ssa" {
			t.Errorf("record %d: %+v", r.Version, r.Release)
		}
		got = append(got, fmt.Sprintf("v%d %s of %v by %q: %v", r.Version, r.Labels["status"], r.Config["captain"],
			r.Labels[v1.LabelOwner], names))
	}
	return got
}

// Each write is one that a crash may follow: their order matters.
func TestInstall(t *testing.T) {
	m, server := newServer(t)
	orphan := harbour("bildad", "pequod", "bouton")
	orphan.Owner = nil
	steps := []struct {
		name    string
		spec    Spec
		refused string
		writes  string
		records []string
	}{
		{
			name: "install", spec: harbour("ahab", "pequod", "rachel"),
			writes:  "POST v1, PATCH pequod, PATCH rachel, PUT v1",
			records: []string{`v1 deployed of ahab by "Port.nantucket": [pequod rachel]`},
		},
		{
			name: "no change", spec: harbour("ahab", "pequod", "rachel"),
			records: []string{`v1 deployed of ahab by "Port.nantucket": [pequod rachel]`},
		},
		{
			name: "failed upgrade", spec: harbour("bildad", "pequod", "bouton"), refused: "pequod",
			writes: "POST v2, PATCH bouton, PATCH pequod, PUT v2",
			records: []string{
				`v1 deployed of ahab by "Port.nantucket": [pequod rachel]`, `v2 failed of bildad by "Port.nantucket": [bouton pequod]`,
			},
		},
		{
			name: "upgrade", spec: orphan,
			writes: "POST v3, PATCH bouton, PATCH pequod, DELETE rachel, PUT v1, PUT v3",
			records: []string{
				`v1 superseded of ahab by "Port.nantucket": [pequod rachel]`, `v2 failed of bildad by "Port.nantucket": [bouton pequod]`,
				`v3 deployed of bildad by "": [bouton pequod]`,
			},
		},
		{
			name: "next upgrade", spec: harbour("peleg", "pequod"),
			writes: "DELETE v1, DELETE v2, POST v4, PATCH pequod, DELETE bouton, PUT v3, PUT v4",
			records: []string{
				`v3 superseded of bildad by "": [bouton pequod]`, `v4 deployed of peleg by "Port.nantucket": [pequod]`,
			},
		},
	}
	for _, step := range steps {
		server.refused, server.writes = step.refused, nil
		err := m.Install(t.Context(), step.spec)
		if Refused(err) != (step.refused != "") || err != nil && step.refused == "" {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := strings.Join(server.writes, ", "); got != step.writes {
			t.Errorf("%s: wrote %s", step.name, got)
		}
		if diff := cmp.Diff(step.records, recorded(t, m)); diff != "" {
			t.Errorf("%s: records (-want +got):\n%s", step.name, diff)
		}
	}
	if err := m.Uninstall(t.Context(), "sea", "harbour"); err != nil || len(server.objects) > 0 {
		t.Error(err, server.objects)
	}
}

func TestUnknownKind(t *testing.T) {
	m, server := newServer(t)
	spec := harbour("ahab", "pequod")
	spec.Chart.Templates = append(spec.Chart.Templates, &common.File{
		Name: "templates/whale.yaml", Data: []byte("apiVersion: sea/v1\nkind: Whale\nmetadata: {name: moby, namespace: sea}\n"),
	})
	if err := m.Install(t.Context(), spec); !meta.IsNoMatchError(err) {
		t.Error(err)
	}
	if len(server.writes) > 0 {
		t.Errorf("wrote %v", server.writes)
	}
}

func TestRenderKeepsTheChart(t *testing.T) {
	m, _ := newServer(t)
	spec := harbour("ahab", "pequod")
	spec.Chart.Metadata.Dependencies = []*chart.Dependency{{Name: "pier", Condition: "docks"}}
	spec.Chart.AddDependency(&chart.Chart{
		Metadata: &chart.Metadata{Name: "pier", Version: "1.0.0", APIVersion: "v2"}, Values: map[string]any{"length": 1.0},
	})
	spec.Chart.Values["nested"] = map[string]any{"a": 1.0}
	spec.Chart.Templates = append(spec.Chart.Templates, &common.File{
		Name: "templates/change.yaml", Data: []byte(`{{ $_ := set .Values.nested "a" 2 }}{{ $_ = set .Values "depth" 4 }}`),
	})
	spec.Values["docks"] = false
	if _, err := m.Render(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"depth": 3.0, "nested": map[string]any{"a": 1.0}}, spec.Chart.Values); diff != "" {
		t.Errorf("values: %s", diff)
	}
	if diff := cmp.Diff([]*chart.Dependency{{Name: "pier", Condition: "docks"}}, spec.Chart.Metadata.Dependencies); diff != "" {
		t.Errorf("dependencies in the metadata: %s", diff)
	}
	if len(spec.Chart.Dependencies()) != 1 {
		t.Error("a dependency is gone")
	}
}
