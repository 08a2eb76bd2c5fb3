package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestCompareSchema(t *testing.T) {
	marked := func(version string) map[string]string { return map[string]string{SchemaVersionAnnotation: version} }
	cases := map[string]struct {
		live  map[string]string
		state SchemaState
		have  *int
	}{
		"no CRD":                     {nil, SchemaNotInstalled, nil},
		"someone else's":             {map[string]string{}, SchemaNotOwned, nil},
		"the mark of someone else":   {marked("new"), SchemaNotOwned, nil},
		"the same":                   {marked("3"), SchemaSame, ptr.To(3)},
		"older":                      {marked("2"), SchemaOlder, ptr.To(2)},
		"taken over, and older":      {marked("0"), SchemaOlder, ptr.To(0)},
		"newer by more than a digit": {marked("10"), SchemaNewer, ptr.To(10)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := Schema{Name: "boats.harbour.test", State: c.state, Client: 3, Cluster: c.have}
			if diff := cmp.Diff(want, compareSchema("boats.harbour.test", 3, c.live)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompareSchemasOfAllCRDs(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var live []metav1.PartialObjectMetadata
	for _, crd := range all[1:] {
		live = append(live, metav1.PartialObjectMetadata{ObjectMeta: crd.ObjectMeta})
	}
	schemas, err := CompareSchemas(append(live, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "boats.harbour.test"}}))
	if err != nil || len(schemas) != len(all) {
		t.Fatalf("%v %v", schemas, err)
	}
	for i, schema := range schemas {
		want := SchemaSame
		if i == 0 {
			want = SchemaNotInstalled
		}
		if schema.State != want {
			t.Errorf("%+v", schema)
		}
	}
}
