package manifest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// What of a template has to change for a Lazy policy to take effect.
func TestActivateByTemplate(t *testing.T) {
	const deployment, service, secret = "Deployment apps/v1\nspec: {replicas: 2}", "Service v1\nspec: {type: ClusterIP}", "Secret v1\ndata: {password: YQ==}"
	type change = func(u *unstructured.Unstructured)
	set := func(value any, path ...string) change {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	}
	all := func(changes ...change) change {
		return func(u *unstructured.Unstructured) {
			for _, c := range changes {
				c(u)
			}
		}
	}
	annotated := func(key string) change { return set(map[string]any{key: "b"}, "metadata", "annotations") }
	wrote := func(manager, fields string, second int) change {
		return func(u *unstructured.Unstructured) {
			at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC))
			u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}))
		}
	}
	rewritten := set("2", "metadata", "resourceVersion")
	generation := func(n int64) change { return set(n, "metadata", "generation") }
	for name, c := range map[string]struct {
		object        string
		before, after change
		want          bool
	}{
		"nothing but the resourceVersion":       {deployment, generation(1), all(generation(1), rewritten), false},
		"a new default":                         {deployment, generation(1), all(generation(1), set("b", "spec", "a")), false},
		"the spec":                              {deployment, generation(1), all(generation(2), set(int64(3), "spec", "replicas")), true},
		"the status":                            {deployment, generation(1), all(generation(1), set("b", "status", "a")), false},
		"a field that no client owns":           {"APIService apiregistration.k8s.io/v1\nspec: {group: a}", all(generation(1), wrote("kubectl", `{"f:spec":{"f:group":{}}}`, 0)), all(generation(2), set("YQ==", "spec", "caBundle"), wrote("kubectl", `{"f:spec":{"f:group":{}}}`, 0)), false},
		"deletion":                              {deployment, generation(1), generation(2), false},
		"another one with the same generation":  {deployment, generation(1), all(generation(1), set("other", "metadata", "uid"), set(int64(3), "spec", "replicas")), true},
		"a label":                               {deployment, generation(1), all(generation(1), set("b", "metadata", "labels", "a")), true},
		"an annotation":                         {deployment, generation(1), all(generation(1), annotated("a")), true},
		"an annotation of ours":                 {deployment, generation(1), all(generation(1), annotated("fairlead.dev/a")), false},
		"a new default without generation":      {service, wrote("kubectl", `{"f:spec":{"f:type":{}}}`, 0), all(wrote("kubectl", `{"f:spec":{"f:type":{}}}`, 0), set("Cluster", "spec", "internalTrafficPolicy")), false},
		"a field that somebody has set":         {service, wrote("kubectl", `{"f:spec":{"f:type":{}}}`, 0), all(wrote("kubectl", `{"f:spec":{"f:type":{},"f:internalTrafficPolicy":{}}}`, 0), set("Cluster", "spec", "internalTrafficPolicy")), true},
		"a Secret that was only written again":  {secret, wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), all(wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), rewritten), false},
		"a Secret whose metadata somebody owns": {secret, wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), all(wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), wrote("owner", `{"f:metadata":{"f:ownerReferences":{}}}`, 1), rewritten), false},
		"the value of a Secret":                 {secret, wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), all(wrote("kubectl", `{"f:data":{"f:password":{}}}`, 1), set("Yg==", "data", "password"), rewritten), true},
		"a key of a Secret that is removed":     {secret, wrote("kubectl", `{"f:data":{"f:password":{},"f:user":{}}}`, 0), all(wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), rewritten), true},
		"an annotation of a Secret":             {secret, wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), all(wrote("kubectl", `{"f:data":{"f:password":{}}}`, 0), annotated("a"), rewritten), true},
		"a Secret without managedFields":        {secret, all(), rewritten, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(change change) *unstructured.Unstructured {
				u := adoptiontest.Object(t, c.object)
				u.SetUID("it")
				u.SetResourceVersion("1")
				change(u)
				return u
			}
			version := func(change change) string {
				v, err := ActivationVersion(object(change))
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			earlier := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}}
			bound := func(version string) *model.Binding {
				b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it"})
				b.Spec.Placement, b.Spec.ConflictResolution = &earlier, policyv1alpha1.ConflictAbort
				model.SetActivation(b, version, false)
				return b
			}
			p := &policy.Policy{Spec: policyv1alpha1.PropagationSpec{ActivationPreference: policyv1alpha1.ActivationLazy}}
			if a := p.Activate(bound(version(c.before)), version(c.after), time.Time{}); a.Deferred == c.want {
				t.Errorf("from %q to %q: takes effect %t", version(c.before), version(c.after), !a.Deferred)
			}
			// What fairlead status compares is the version of the template, as before.
			if want, err := Version(object(c.after)); err != nil || model.ActivatedVersion(bound(version(c.after))) != want {
				t.Errorf("recorded %q, want %q, %v", model.ActivatedVersion(bound(version(c.after))), want, err)
			}
			// A record of an earlier version of the operator has nothing else.
			if want, err := Version(object(c.before)); err != nil || !p.Activate(bound(want), version(c.before), time.Time{}).Deferred {
				t.Errorf("takes effect because the operator is upgraded: %v", err)
			}
		})
	}
}
