package meshstatus

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Each owner applies its own condition and fields only, and nothing if they are as they were.
func TestApply(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	served := metav1.Condition{Type: "Served", Status: "True", Reason: "Served", ObservedGeneration: 2, LastTransitionTime: since}
	mesh := &kumav1alpha1.Mesh{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 2, ResourceVersion: "7"},
		Status: kumav1alpha1.MeshStatus{
			Mode: "Everywhere", Conditions: []metav1.Condition{served}, Migration: &kumav1alpha1.MeshMigration{Intent: "one"},
		},
	}
	for name, c := range map[string]struct {
		condition metav1.Condition
		set       func(*kumav1alpha1.MeshStatus)
		want      string
	}{
		"unchanged": {condition: metav1.Condition{Type: "Served", Status: "True", Reason: "Served"}},
		"a reason": {
			condition: metav1.Condition{Type: "Served", Status: "True", Reason: "Incomplete"},
			want:      `{"conditions":[{"type":"Served","status":"True","observedGeneration":2,"lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Incomplete","message":""}]}`,
		},
		"another condition and a field": {
			condition: metav1.Condition{Type: "Generated", Status: "True", Reason: "Generated", LastTransitionTime: since},
			set:       func(s *kumav1alpha1.MeshStatus) { s.Mode = "Exclusive" },
			want: `{"conditions":[{"type":"Generated","status":"True","observedGeneration":2,"lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Generated","message":""}],` +
				`"mode":"Exclusive"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := &statusAPI{mesh: *mesh.DeepCopy()}
			changed, err := Apply(t.Context(), api, mesh, Served, c.condition, c.set)
			if err != nil || changed != (c.want != "") {
				t.Errorf("changed is %v, error %v", changed, err)
			}
			if api.status != c.want {
				t.Errorf("applied %s, want %s", api.status, c.want)
			}
		})
	}
}

// Tags that tenants choose, and errors that proxies send, are quoted without the characters that a terminal obeys.
func TestConditionIsPrintable(t *testing.T) {
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	api := &statusAPI{}
	if _, err := Apply(t.Context(), api, mesh, Served, metav1.Condition{Type: "Served", Status: "True", Reason: "Incomplete", Message: "tag \x1b[2J"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := api.mesh.Status.Conditions[0].Message; got != `tag \x1b[2J` {
		t.Errorf("applied %q", got)
	}
}

// statusAPI keeps the applied status, and answers with the merged one.
type statusAPI struct {
	client.Client
	mesh   kumav1alpha1.Mesh
	status string
}

func (a *statusAPI) Status() client.SubResourceWriter { return statusWriter{api: a} }

type statusWriter struct {
	client.SubResourceWriter
	api *statusAPI
}

func (w statusWriter) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	text, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	var part struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(text, &part); err != nil {
		return err
	}
	w.api.status = string(part.Status)
	var sent kumav1alpha1.MeshStatus
	if err := json.Unmarshal(part.Status, &sent); err != nil {
		return err
	}
	for _, c := range sent.Conditions {
		meta.SetStatusCondition(&w.api.mesh.Status.Conditions, c)
	}
	w.api.mesh.Status.Mode = cmp.Or(sent.Mode, w.api.mesh.Status.Mode)
	merged, err := json.Marshal(map[string]any{"status": w.api.mesh.Status})
	if err != nil {
		return err
	}
	return json.Unmarshal(merged, configuration)
}
