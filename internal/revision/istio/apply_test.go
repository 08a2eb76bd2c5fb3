package istio

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// A revision that has changed since the plan may be in use again: pruning it is a conflict, and needs a new plan.
func TestPruneConflict(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	old := makeRevision("default-v1-24-0", "v1.24.0")
	if err := c.Create(t.Context(), old.IstioRevision); err != nil {
		t.Fatal(err)
	}
	planned := old.IstioRevision.DeepCopy()
	planned.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(v1.IstioRevisionKind))
	old.IstioRevision.Labels = map[string]string{"changed": "since"}
	if err := c.Update(t.Context(), old.IstioRevision); err != nil {
		t.Fatal(err)
	}
	prune := passage.Step{Action: ActionPrune, Object: passage.Object{Kind: v1.IstioRevisionKind, Name: old.Name}}
	r := &reconciler{Tools: installer.Tools{Client: c}}

	err := r.applyStep(t.Context(), Observed{Revisions: []Revision{{IstioRevision: planned}}}, prune)
	if !apierrors.IsConflict(err) {
		t.Errorf("pruning a revision that has changed returns %v, want a conflict", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: old.Name}, &v1.IstioRevision{}); err != nil {
		t.Errorf("the revision that has changed: %v", err)
	}
	if err := r.applyStep(t.Context(), Observed{Revisions: []Revision{old.Revision}}, prune); err != nil {
		t.Errorf("pruning the revision as it is: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: old.Name}, &v1.IstioRevision{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pruned revision: %v", err)
	}
}
