package admission

import (
	"bytes"
	"os"
	"testing"
)

func TestPolicies(t *testing.T) {
	objects, err := Policies()
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]int{}
	for _, object := range objects {
		bound[object.GetName()]++
	}
	if len(objects) != 4 || bound["istios.deletion.fairlead.dev"] != 2 || bound["istiorevisiontags.deletion.fairlead.dev"] != 2 {
		t.Errorf("a policy and a binding for each kind, but there are %v", bound)
	}
}

func TestChartHasThePolicies(t *testing.T) {
	chart, err := os.ReadFile("../../../charts/fairlead/generated/deletion-warnings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(chart, policies) {
		t.Error("the policies of the chart differ: run make generated")
	}
}
