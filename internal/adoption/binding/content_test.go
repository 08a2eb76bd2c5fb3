package binding

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// secretObserved is a binding of a Secret that a policy takes to cluster west, without its Work.
func secretObserved(t *testing.T, value string) Observed {
	t.Helper()
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-deployment"})
	b.SetUID("b")
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "it"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
	return Observed{Binding: b, Template: adoptiontest.Object(t, "Secret v1\ndata: {password: "+value+"}"), Works: map[string]*workv1alpha1.Work{}}
}

func rawOf(work *workv1alpha1.Work) string { return string(work.Spec.Workload.Manifests[0].Raw) }

// withValues has the values of the Secret, as the Works of earlier versions do.
func withValues(t *testing.T, step Step) *workv1alpha1.Work {
	t.Helper()
	work := step.Work.DeepCopy()
	object, err := step.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.MarshalJSON()
	if err != nil || !strings.Contains(string(text), "aHVudGVyMg==") {
		t.Fatalf("%s, %v", text, err)
	}
	work.Spec.Workload.Manifests[0].Raw = text
	return work
}

// The values of a Secret are in no Work, and a change of them changes the Work nevertheless.
func TestWorkOfASecret(t *testing.T) {
	o := secretObserved(t, "aHVudGVyMg==")
	created := Decide(o).Steps[0]
	if created.Action != model.ActionCreate || strings.Contains(rawOf(created.Work), "aHVudGVyMg") || strings.Contains(rawOf(created.Work), "password") {
		t.Fatalf("%s %s", created.Action, rawOf(created.Work))
	}
	object, err := created.Manifest()
	if value, _, _ := unstructured.NestedString(object.Object, "data", "password"); err != nil || value != "aHVudGVyMg==" {
		t.Errorf("%v, %v", object, err)
	}
	o.Works["west"] = created.Work
	if step := Decide(o).Steps[0]; step.Action != model.ActionNone {
		t.Errorf("%s %s", step.Action, step.Reason)
	}
	o.Template = secretObserved(t, "b3RoZXI=").Template
	if step := Decide(o).Steps[0]; step.Action != model.ActionUpdate || strings.Contains(rawOf(step.Work), "b3RoZXI") {
		t.Errorf("%s %s", step.Action, rawOf(step.Work))
	}
}

// A Work of an earlier version, which has the values, is written without them, also if no policy takes the Secret any more.
func TestWorkOfASecretFromAnEarlierVersion(t *testing.T) {
	for name, taken := range map[string]bool{"taken": true, "released": false} {
		t.Run(name, func(t *testing.T) {
			o := secretObserved(t, "aHVudGVyMg==")
			without := Decide(o).Steps[0]
			o.Works["west"] = withValues(t, without)
			if !taken {
				model.Claim(o.Binding, model.PolicyKey{})
			}
			s := newStage(t, o)
			for _, updates := range []bool{true, false} {
				if err := s.reconcile(t); err != nil {
					t.Fatal(err)
				}
				work := &workv1alpha1.Work{}
				work.Namespace, work.Name = without.Work.Namespace, without.Work.Name
				if s.Exists(t, work); !equalSpecs(work.Spec, without.Work.Spec) {
					t.Errorf("got %s, want %s", rawOf(work), rawOf(without.Work))
				}
				if updated := strings.Contains(strings.Join(s.Writes, " "), "update Work"); updated != updates {
					t.Errorf("%v", s.Writes)
				}
			}
		})
	}
}
