package forecast

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// BenchmarkSharedDependency plans the bindings of Deployments that all require the same ConfigMap, and fails when four times as
// many cost more than four times as much.
func BenchmarkSharedDependency(b *testing.B) {
	const few, many = 250, 1000
	// Noise of the machine is given as much as the growth is.
	const most = 2 * many / few
	templates := map[int][]*unstructured.Unstructured{few: deployments(b, few), many: deployments(b, many)}
	settings := adoptiontest.Object(b, "ConfigMap v1\ndata: {currency: EUR}")
	subject := &policy.Policy{Namespace: "shop", Name: "p", Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}, PropagateDeps: true,
	}}
	spent := map[int]time.Duration{}
	for b.Loop() {
		for n, found := range templates {
			v := &hubState{policies: []*policy.Policy{subject}, members: []policy.Member{{Name: "west"}}, bindings: map[client.ObjectKey]*model.Binding{}}
			started := processorTime(b)
			all, _, err := v.bindTemplates(found, subject, func(model.TemplateKey) (*unstructured.Unstructured, error) { return settings, nil })
			spent[n] += processorTime(b) - started
			if err != nil || len(all) != n+1 {
				b.Fatal(len(all), err)
			}
		}
	}
	ratio := float64(spent[many]) / float64(spent[few])
	b.ReportMetric(float64(spent[many].Nanoseconds())/float64(b.N*many), "ns/template")
	b.ReportMetric(ratio, "x-time/x4-templates")
	if ratio > most {
		b.Fatalf("%d templates cost %.1f times as much as %d", many, ratio, few)
	}
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

// processorTime is what this process has used; the clock on the wall also counts what others do.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
