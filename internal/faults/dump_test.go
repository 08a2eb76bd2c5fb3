package faults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestDump(t *testing.T) {
	tests := map[string]struct {
		dump    Dump
		objects []string
		want    map[string]string
	}{
		"volatile metadata goes, generation stays": {
			objects: []string{`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: 6f1c2a54-0a9c-4a48-9df3-3a0d3f2f8b11
  resourceVersion: "812"
  generation: 3
  creationTimestamp: "2030-01-02T03:04:05Z"
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: cart, uid: 6f1c2a54-0a9c-4a48-9df3-3a0d3f2f8b12}
`},
			want: map[string]string{"Deployment.apps shop/web": `apiVersion: apps/v1
kind: Deployment
metadata:
  generation: 3
  name: web
  namespace: shop
  ownerReferences:
  - apiVersion: v1
    kind: ConfigMap
    name: cart
    uid: ""
`},
		},
		"times and uids in the content are replaced, also inside text": {
			objects: []string{`
apiVersion: v1
kind: ConfigMap
metadata: {name: cart}
data:
  at: "2030-01-02T03:04:05.678+02:00"
  note: rolled out 6f1c2a54-0a9c-4a48-9df3-3a0d3f2f8b11 at 2030-01-02T03:04:05Z
`},
			want: map[string]string{"ConfigMap cart": `apiVersion: v1
data:
  at: <time>
  note: rolled out <uid> at <time>
kind: ConfigMap
metadata:
  name: cart
`},
		},
		"field owners stay, in a fixed order and without times": {
			objects: []string{`
apiVersion: v1
kind: ConfigMap
metadata:
  name: cart
  managedFields:
  - {manager: kubectl, operation: Update, apiVersion: v1, time: "2030-01-02T03:04:05Z"}
  - {manager: fairlead, operation: Apply, apiVersion: v1, time: "2030-01-02T03:04:06Z", fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}
`},
			want: map[string]string{"ConfigMap cart": `apiVersion: v1
kind: ConfigMap
metadata:
  managedFields:
  - apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1:
      f:data:
        f:a: {}
    manager: fairlead
    operation: Apply
  - apiVersion: v1
    manager: kubectl
    operation: Update
  name: cart
`},
		},
		"generated names are told by their prefix, wherever they occur": {
			objects: []string{
				`{apiVersion: v1, kind: Pod, metadata: {name: web-x1, generateName: web-}, spec: {nodeName: b}}`,
				`{apiVersion: v1, kind: Pod, metadata: {name: web-x2, generateName: web-}, spec: {nodeName: a}}`,
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: seen}, data: {pod: web-x2}}`,
			},
			want: map[string]string{
				"Pod web-* #1":   "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: web-\n  name: web-*\nspec:\n  nodeName: a\n",
				"Pod web-* #2":   "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: web-\n  name: web-*\nspec:\n  nodeName: b\n",
				"ConfigMap seen": "apiVersion: v1\ndata:\n  pod: web-*\nkind: ConfigMap\nmetadata:\n  name: seen\n",
			},
		},
		"the names of a world are replaced": {
			dump:    Dump{Names: map[string]string{"ns-7": "NS", "ns-71": "OTHER"}},
			objects: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: cart, namespace: ns-7}, data: {from: ns-71/a}}`},
			want:    map[string]string{"ConfigMap NS/cart": "apiVersion: v1\ndata:\n  from: OTHER/a\nkind: ConfigMap\nmetadata:\n  name: cart\n  namespace: NS\n"},
		},
		"a scrub of one's own": {
			dump: Dump{Scrub: func(obj *unstructured.Unstructured) {
				unstructured.RemoveNestedField(obj.Object, "data", "random")
			}},
			objects: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: cart}, data: {random: x8s7}}`},
			want:    map[string]string{"ConfigMap cart": "apiVersion: v1\ndata: {}\nkind: ConfigMap\nmetadata:\n  name: cart\n"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var objects []unstructured.Unstructured
			for _, text := range tc.objects {
				var obj unstructured.Unstructured
				if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, obj)
			}
			got, err := tc.dump.describe(objects)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
