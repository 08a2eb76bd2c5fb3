package adoption_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// manyObjects are of several kinds, because the namespace controller deletes one kind after the other, in any order.
func manyObjects() (all []client.Object) {
	for i := range 4 {
		name := fmt.Sprint("it-", i)
		all = append(all, configMap(name), deployment(name), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	return all
}

// The namespace controller of the hub deletes policies, templates and bindings in any order. What becomes of the objects in the
// members is what the policy says.
func TestNamespaceDeleted(t *testing.T) {
	t.Parallel()
	for name, preserved := range map[string]bool{"all objects go": false, "all objects stay, unmarked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			p := policy("v1", "ConfigMap", everywhere, func(p *policyv1alpha1.PropagationSpec) {
				p.ResourceSelectors = append(p.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"},
					policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"})
				p.PreserveResourcesOnDeletion = &preserved
			})
			all := manyObjects()
			s.create(t, s.hub, append(all, p)...)
			s.tells(t, p.Name, "Applied", fmt.Sprintf("all %d resources are applied", len(all)))
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
			if err := s.hub.Delete(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			// The bindings keep the namespace until all objects are deleted or released.
			wait.Until(t, func(ctx context.Context) error {
				if err := s.hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
					return fmt.Errorf("namespace %s of the hub is still there: %+v, %v", namespace.Name, namespace.Status.Conditions, err)
				}
				return nil
			})
			for member, site := range s.members {
				for _, o := range all {
					if !preserved {
						s.gone(t, site, o)
						continue
					}
					s.read(t, site, o)
					if err := isClean(o); err != nil {
						t.Errorf("%T %s in %s: %v", o, o.GetName(), member, err)
					}
				}
			}
		})
	}
}
