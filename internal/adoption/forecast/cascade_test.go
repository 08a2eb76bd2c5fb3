package forecast

import (
	"errors"
	"fmt"
	"testing"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestCascadeOfACustomResourceDefinition(t *testing.T) {
	crd := adoptiontest.Object(t, "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {group: apps, names: {kind: Deployment}, versions: [{name: v0, served: false}, {name: v1, served: true}]}")
	west := adoptiontest.NewAPI(t, nil, adoptiontest.Object(t, "Deployment apps/v1"))
	got, err := countCascade(t.Context(), &member.Client{Name: "west", API: west}, crd)
	if err != nil || fmt.Sprint(got) != "map[Deployment:1]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDescribeCascade(t *testing.T) {
	some := map[string]int64{"Deployment": 3, "ConfigMap": 12}
	for want, c := range map[string]struct {
		action passage.Action
		counts map[string]int64
		err    error
	}{
		"its deletion deletes with it: ConfigMap 12, Deployment 3":                                                              {model.ActionDelete, some, nil},
		"its deletion deletes with it: nothing that the hub may read":                                                           {model.ActionDelete, nil, nil},
		"spec.deletionProtection is Disabled, so the deletion of its template would delete with it: ConfigMap 12, Deployment 3": {model.ActionNone, some, nil},
		"what its deletion would delete with it is unknown: list Deployment in cluster west: refused":                           {model.ActionNone, some, errors.New("list Deployment in cluster west: refused")},
	} {
		if got := describeCascade(Outcome{Action: c.action, Cascade: c.counts}, c.err); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Only what is not protected would cascade, and needs to be counted.
func TestCascading(t *testing.T) {
	for _, c := range []struct {
		object     string
		protection policyv1alpha1.DeletionProtection
		want       int
	}{{"Namespace v1", "", 0}, {"Namespace v1", "Disabled", 1}, {"CustomResourceDefinition apiextensions.k8s.io/v1", "Disabled", 1}, {"PersistentVolumeClaim v1", "Disabled", 0}} {
		template := adoptiontest.Object(t, c.object)
		b := model.NewBinding(model.KeyOf(template).Binding())
		b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, b.Spec.DeletionProtection = template.GetAPIVersion(), template.GetKind(), c.protection
		if got := cascading([]plannedBinding{{template, b}}); len(got) != c.want {
			t.Errorf("%s, %s: %v", c.object, c.protection, got)
		}
	}
}
