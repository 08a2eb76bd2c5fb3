package compatibility

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
)

// The manifests of the kinds that users bring from elsewhere exercise every field of the schema: TestStoryExamplesAreAcceptedAndDefaulted
// applies them, and finds every field again.
func TestStoryEverythingSaidHasEveryField(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"PropagationPolicy", "ClusterPropagationPolicy", "ResourceBinding", "ClusterResourceBinding", "Cluster"} {
		example := read(t, "testdata/accepted/"+strings.ToLower(kind)+"-everything-said.yaml")
		for _, crd := range all {
			if crd.Spec.Names.Kind == kind {
				expectFields(t, kind+": spec", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], example.Object["spec"])
			}
		}
	}
}

// expectFields expects a value to have every field of its schema, in at least one of the items of a list.
func expectFields(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps, values ...any) {
	t.Helper()
	if schema.Items != nil {
		var items []any
		for _, v := range values {
			list, _ := v.([]any)
			items = append(items, list...)
		}
		expectFields(t, path+"[]", *schema.Items.Schema, items...)
		return
	}
	for name, property := range schema.Properties {
		var found []any
		for _, v := range values {
			if object, ok := v.(map[string]any); ok && object[name] != nil {
				found = append(found, object[name])
			}
		}
		if len(found) == 0 {
			t.Errorf("no example of %s.%s", path, name)
			continue
		}
		expectFields(t, path+"."+name, property, found...)
	}
}

// A status that another project has written is kept, with every field of it.
func TestStoryStatusesOfOthersAreKept(t *testing.T) {
	c := server(t)
	for name, tc := range map[string]struct{ file, status string }{
		"cluster": {"cluster-host-and-port", `{
			kubernetesVersion: v1.34.0, remedyActions: [TrafficControl],
			apiEnablements: [{groupVersion: apps/v1, resources: [{name: deployments, kind: Deployment}]}],
			nodeSummary: {totalNum: 3, readyNum: 2},
			resourceSummary: {allocatable: {cpu: "8"}, allocating: {cpu: "1"}, allocated: {cpu: "2"}, allocatableModelings: [{grade: 1, count: 3}]},
			conditions: [{type: Ready, status: "True", reason: ClusterReady, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}],
		}`},
		"binding": {"resourcebinding-everything-said", `{
			schedulerObservedGeneration: 2, schedulerObservingAffinityName: primary, lastScheduledTime: "2026-01-02T03:04:05Z",
			conditions: [{type: Scheduled, status: "True", reason: Success, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}],
			aggregatedStatus: [{clusterName: east, status: {replicas: 2}, applied: true, appliedMessage: "", health: Healthy}],
		}`},
	} {
		t.Run(name, func(t *testing.T) {
			applied := apply(t, c, read(t, "testdata/accepted/"+tc.file+".yaml"))
			want := parse(t, "status: "+tc.status).Object["status"]
			applied.Object["status"] = want
			if err := c.Status().Update(t.Context(), applied); err != nil {
				t.Fatal(err)
			}
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(applied.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, stored.Object["status"]); diff != "" {
				t.Errorf("stored status (-want +got):\n%s", diff)
			}
		})
	}
}

// Kuma writes the mesh of a Dataplane beside its spec, and a status without a subresource.
func TestStoryDataplaneKeepsMeshAndStatus(t *testing.T) {
	c := server(t)
	example := read(t, "testdata/accepted/dataplane-of-kuma-everything-said.yaml")
	example.Object["status"] = map[string]any{"phase": "Online"}
	applied := apply(t, c, example)
	if applied.Object["mesh"] != "payments" || !cmp.Equal(applied.Object["status"], example.Object["status"]) {
		t.Errorf("mesh %v, status %v", applied.Object["mesh"], applied.Object["status"])
	}
}
