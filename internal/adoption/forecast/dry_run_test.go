package forecast

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// A forecast has the member try each write, and leaves nothing behind.
func TestPredictObject(t *testing.T) {
	conflict := apierrors.NewConflict(configMaps, "it", errors.New("changed"))
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")
	denied := apierrors.NewForbidden(configMaps, "it", errors.New("denied"))
	for name, c := range map[string]struct {
		resolution policyv1alpha1.ConflictResolution
		live       string
		// fails are the results of the first requests of a verb.
		fails  map[string][]error
		action passage.Action
		failed bool
		says   string
		note   string
	}{
		"created":                             {action: model.ActionCreate},
		"created with its namespace":          {fails: map[string][]error{"dry-run create": {missing}}, action: model.ActionCreate, note: "the namespace is created first"},
		"creation is denied":                  {fails: map[string][]error{"dry-run create": {denied}}, action: model.ActionCreate, failed: true, says: "denied"},
		"taken over":                          {resolution: policyv1alpha1.ConflictOverwrite, live: "{a: c}", action: model.ActionTakeOver},
		"takeover is denied":                  {resolution: policyv1alpha1.ConflictOverwrite, live: "{a: c}", fails: map[string][]error{"dry-run update": {denied}}, action: model.ActionTakeOver, failed: true, says: "denied"},
		"left alone":                          {live: "{a: c}", action: model.ActionConflict, failed: true, says: "exists in cluster west already"},
		"changed twice meanwhile":             {resolution: policyv1alpha1.ConflictOverwrite, live: "{a: c}", fails: map[string][]error{"dry-run update": {conflict, conflict}}, action: model.ActionTakeOver},
		"changed again and again":             {resolution: policyv1alpha1.ConflictOverwrite, live: "{a: c}", fails: map[string][]error{"dry-run update": {conflict, conflict, conflict}}, action: model.ActionTakeOver, failed: true, says: "changed"},
		"not to be read":                      {fails: map[string][]error{"get": {denied}}, action: model.ActionUnknown, failed: true, says: "denied"},
		"created by another client meanwhile": {fails: map[string][]error{"dry-run create": {apierrors.NewAlreadyExists(configMaps, "it")}}, action: model.ActionCreate, failed: true, says: "already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.live != "" {
				objects = append(objects, adoptiontest.Object(t, "ConfigMap v1\ndata: "+c.live))
			}
			api := adoptiontest.NewAPI(t, nil, objects...)
			api.On = func(verb string, _ client.Object) error {
				if len(c.fails[verb]) == 0 {
					return nil
				}
				err := c.fails[verb][0]
				c.fails[verb] = c.fails[verb][1:]
				return err
			}
			m, _, err := manifest.FromTemplate(adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"), c.resolution)
			if err != nil {
				t.Fatal(err)
			}
			s := &simulator{id: "hub", clusters: map[string]*clusterv1alpha1.Cluster{"west": {ObjectMeta: metav1.ObjectMeta{Name: "west"}}}}
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace("west"), Name: "it"}}
			got := s.predictObject(t.Context(), &member.Client{Name: "west", API: api}, w, m)
			if got.Action != c.action || got.Failed != c.failed || got.Note != c.note || !strings.Contains(got.Reason.Message, c.says) || got.Object.String() != "ConfigMap shop/it in west" {
				t.Errorf("got %+v", got)
			}
			if changes := []Difference{{"data.a", "c", "b"}}; c.action == model.ActionTakeOver && !c.failed && !cmp.Equal(got.Differences, changes) {
				t.Errorf("got %v", got.Differences)
			}
			for _, write := range api.Writes {
				if !strings.HasPrefix(write, "dry-run ") {
					t.Errorf("the forecast does: %s", write)
				}
			}
		})
	}
}

// Only what a step does to pods is added up: those of a workload that stays as it is do not restart.
func TestTotalsAndPlan(t *testing.T) {
	obstacle := passage.Step{Action: model.ActionBind, State: passage.Failed}
	f := Forecast{Obstacles: []passage.Step{obstacle}, Outcomes: []Outcome{
		{Action: model.ActionNone, Effect: Effect{Pods: 100}},
		{Action: model.ActionTakeOver, Effect: Effect{Pods: 2, Restarts: true}},
		{Action: model.ActionTakeOver, Effect: Effect{Pods: 30}},
		{Action: model.ActionUpdate, Effect: Effect{Pods: 5, Restarts: true}, Failed: true},
		{Action: model.ActionDelete, Effect: Effect{Pods: 7, Deleted: true}},
		{Action: model.ActionOrphan, Effect: Effect{Pods: 11}},
		{Action: model.ActionWait},
		{Action: model.ActionConflict, Failed: true},
	}}
	want := Totals{
		Actions: map[passage.Action]int{
			model.ActionNone: 1, model.ActionTakeOver: 2, model.ActionUpdate: 1, model.ActionDelete: 1, model.ActionOrphan: 1, model.ActionWait: 1, model.ActionConflict: 1,
		},
		Failed: 2, Workloads: 2, Pods: 7, PodsDeleted: 7,
	}
	if diff := cmp.Diff(want, f.Totals()); diff != "" {
		t.Error(diff)
	}
	var states []string
	for _, s := range f.Plan().Steps {
		states = append(states, fmt.Sprint(s.Action, " ", s.State, " ", s.Disruptive))
	}
	wantStates := []string{
		"unchanged Done false", "take over Pending true", "take over Pending false", "update Failed true", "delete Pending false",
		"orphan Pending false", "wait Running false", "conflict Failed false", "bind Failed false",
	}
	if diff := cmp.Diff(wantStates, states); diff != "" {
		t.Error(diff)
	}
}

// However the data of a Secret changes, a forecast shows that it does, and never what it is: terminals and logs keep what they show.
func TestDataOfASecretIsHidden(t *testing.T) {
	const secret = "c2VjcmV0"
	for name, c := range map[string][2]string{
		"a value changes":            {"data: {a: " + secret + "}", "data: {a: eA==}"},
		"the first data":             {"type: Opaque", "data: {a: " + secret + "}"},
		"the last data":              {"data: {a: " + secret + "}", "type: Opaque"},
		"of another shape":           {"data: {a: [" + secret + "], b: {c: " + secret + "}}", "data: " + secret},
		"data that is written":       {"type: Opaque", "stringData: {a: " + secret + "}"},
		"what kubectl remembers":     {"metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{data: " + secret + "}'}}", "metadata: {annotations: {a: b}}"},
		"all that kubectl remembers": {"metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{data: " + secret + "}'}}", "type: Opaque"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := adoptiontest.Object(t, "Secret v1\n"+c[0]), adoptiontest.Object(t, "Secret v1\n"+c[1])
			for _, got := range [][]Difference{differences(before, after), differences(after, before)} {
				if text := fmt.Sprint(got); strings.Contains(text, secret) || !strings.Contains(text, "(hidden)") {
					t.Errorf("got %s", text)
				}
			}
		})
	}
}

// A proposed template counts instead of the one that the hub has; one that is being deleted does not count.
func TestGetTemplate(t *testing.T) {
	onHub := adoptiontest.Object(t, "ConfigMap v1\ndata: {from: hub}")
	going := onHub.DeepCopy()
	going.SetFinalizers([]string{"example.com/f"})
	going.SetDeletionTimestamp(&metav1.Time{Time: now})
	proposed := adoptiontest.Object(t, "ConfigMap v1\ndata: {from: proposal}")
	for name, c := range map[string]struct {
		hub, proposed *unstructured.Unstructured
		err           error
		want          string
	}{
		"of the hub":            {hub: onHub, want: "hub"},
		"proposed":              {proposed: proposed, want: "proposal"},
		"changed by a proposal": {hub: onHub, proposed: proposed, want: "proposal"},
		"being deleted":         {hub: going},
		"neither":               {},
		"not to be read":        {hub: onHub, err: apierrors.NewForbidden(configMaps, "it", errors.New("no"))},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.hub != nil {
				objects = append(objects, c.hub.DeepCopy())
			}
			hub := adoptiontest.NewAPI(t, nil, objects...)
			hub.On = func(string, client.Object) error { return c.err }
			v := &hubState{proposed: map[model.TemplateKey]*unstructured.Unstructured{}}
			if c.proposed != nil {
				v.proposed[model.KeyOf(c.proposed)] = c.proposed
			}
			got, err := v.getTemplate(t.Context(), hub, model.KeyOf(onHub))
			from := ""
			if got != nil {
				from, _, _ = unstructured.NestedString(got.Object, "data", "from")
			}
			if !errors.Is(err, c.err) || from != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
