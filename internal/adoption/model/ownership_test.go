package model

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestOwnership(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                Ownership
	}{
		"no marks":                             {nil, nil, Unmanaged},
		"a copied label":                       {map[string]string{LabelManaged: "true"}, nil, Unmanaged},
		"ours":                                 {Identity{"h", "w"}.Labels(), nil, ManagedHere},
		"copied from another object":           {Identity{"h", "x"}.Labels(), nil, Unmanaged},
		"copied from an object of another hub": {Identity{"g", "x"}.Labels(), nil, Unmanaged},
		"another hub's":                        {Identity{"g", "w"}.Labels(), nil, ManagedByAnotherHub},
		"Karmada's": {
			map[string]string{LabelManaged: "true", "work.karmada.io/permanent-id": "7", "resourcebinding.karmada.io/permanent-id": "8"},
			map[string]string{"work.karmada.io/name": "cart-58c", "work.karmada.io/namespace": "karmada-es-west", "resourcetemplate.karmada.io/uid": "9"},
			ManagedByKarmada,
		},
		"of an early Karmada":             {map[string]string{"resourcebinding.karmada.io/key": "5f"}, nil, ManagedByKarmada},
		"of a policy of Karmada":          {nil, map[string]string{"clusterpropagationpolicy.karmada.io/name": "all"}, ManagedByKarmada},
		"ours, and Karmada's before":      {Identity{"h", "w"}.Labels(), map[string]string{"work.karmada.io/name": "cart-58c"}, ManagedHere},
		"another hub's, Karmada's before": {Identity{"g", "w"}.Labels(), map[string]string{"work.karmada.io/name": "cart-58c"}, ManagedByAnotherHub},
		"copied, and Karmada's":           {Identity{"h", "x"}.Labels(), map[string]string{"work.karmada.io/name": "cart-58c"}, ManagedByKarmada},
		"applied as a template would be":  {nil, map[string]string{"work.karmada.io/conflict-resolution": "overwrite", "resourcetemplate.karmada.io/retain-replicas": "true"}, Unmanaged},
	} {
		t.Run(name, func(t *testing.T) {
			live := adoptiontest.Object(t, "ConfigMap v1")
			live.SetLabels(c.labels)
			live.SetAnnotations(c.annotations)
			if got := (Identity{"h", "w"}).OwnershipOf(live); got != c.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

// TestIsOfKarmadaWork: only what Karmada has written for a Work of this very hub is taken over with the Work.
func TestIsOfKarmadaWork(t *testing.T) {
	marked := func(id, namespace, name string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels:      map[string]string{"work.karmada.io/permanent-id": id},
			Annotations: map[string]string{"work.karmada.io/namespace": namespace, "work.karmada.io/name": name},
		}
	}
	work := &metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "nginx-1", Labels: map[string]string{"work.karmada.io/permanent-id": "a"}}
	own := &metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "nginx-1"}
	for name, tc := range map[string]struct {
		object, work *metav1.ObjectMeta
		want         bool
	}{
		"of this Work":                       {marked("a", "karmada-es-east", "nginx-1"), work, true},
		"of a Work of another control plane": {marked("b", "karmada-es-east", "nginx-1"), work, false},
		"of another Work":                    {marked("a", "karmada-es-east", "nginx-2"), work, false},
		"of another cluster":                 {marked("a", "karmada-es-west", "nginx-1"), work, false},
		"a Work that Karmada has not made":   {marked("a", "karmada-es-east", "nginx-1"), own, false},
		"neither has an ID":                  {marked("", "karmada-es-east", "nginx-1"), own, false},
		"without marks":                      {&metav1.ObjectMeta{}, work, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsOfKarmadaWork(tc.object, tc.work); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
