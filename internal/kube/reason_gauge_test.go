package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestReasonGauge(t *testing.T) {
	g := NewReasonGauge("moves", "Moves.", "namespace", "name")
	registry := prometheus.NewRegistry()
	registry.MustRegister(g)
	series := func() (all []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				of := ""
				for _, label := range metric.GetLabel() {
					of += label.GetName() + "=" + label.GetValue() + " "
				}
				all = append(all, of)
			}
		}
		return all
	}
	for _, step := range []struct {
		reason, name string
		want         []string
	}{
		{"Applying", "a", []string{"name=a namespace=shop reason=Applying "}},
		{"Applying", "a", []string{"name=a namespace=shop reason=Applying "}},
		{"Applied", "b", []string{"name=a namespace=shop reason=Applying ", "name=b namespace=shop reason=Applied "}},
		{"Applied", "a", []string{"name=a namespace=shop reason=Applied ", "name=b namespace=shop reason=Applied "}},
		{"", "a", []string{"name=b namespace=shop reason=Applied "}},
		{"", "a", []string{"name=b namespace=shop reason=Applied "}},
	} {
		g.Set(step.reason, "shop", step.name)
		if diff := cmp.Diff(step.want, series()); diff != "" {
			t.Errorf("%s of %s: %s", step.reason, step.name, diff)
		}
	}
}
