package forecast

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/test/harness/growth"
)

// BenchmarkSharedDependency plans the bindings of Deployments that all require the same ConfigMap.
func BenchmarkSharedDependency(b *testing.B) {
	const few, many = 250, 1000
	templates := map[int][]*unstructured.Unstructured{few: deployments(b, few), many: deployments(b, many)}
	settings := adoptiontest.Object(b, "ConfigMap v1\ndata: {currency: EUR}")
	subject := &policy.Policy{Namespace: "shop", Name: "p", Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}, PropagateDeps: true,
	}}
	spent := growth.Linear(b, few, many, func(n int) func() {
		v := &hubState{policies: []*policy.Policy{subject}, members: []policy.Member{{Name: "west"}}, bindings: map[client.ObjectKey]*model.Binding{}}
		return func() {
			all, _, err := v.bindTemplates(templates[n], subject, func(model.TemplateKey) (*unstructured.Unstructured, error) { return settings, nil })
			if err != nil || len(all) != n+1 {
				b.Fatal(len(all), err)
			}
		}
	})
	b.ReportMetric(float64(spent.Nanoseconds())/many, "ns/template")
}

func deployments(b *testing.B, n int) []*unstructured.Unstructured {
	like := adoptiontest.Object(b, "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: pay, envFrom: [{configMapRef: {name: it}}]}]}}}")
	var all []*unstructured.Unstructured
	for i := range n {
		one := like.DeepCopy()
		one.SetName(fmt.Sprintf("pay-%d", i))
		all = append(all, one)
	}
	return all
}
