package faults

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestDescribe(t *testing.T) {
	type want struct {
		Text          string
		Write, Counts bool
	}
	tests := map[string]struct {
		method, path string
		body         []byte
		want         want
	}{
		"get": {
			method: "GET", path: "/api/v1/namespaces/shop/secrets/a",
			want: want{Text: "get secrets shop/a"},
		},
		"watch": {
			method: "GET", path: "/apis/apps/v1/deployments?watch=true",
			want: want{Text: "watch deployments.apps"},
		},
		"create from JSON": {
			method: "POST", path: "/api/v1/namespaces/shop/configmaps",
			body: []byte(`{"metadata":{"name":"cart"}}`),
			want: want{Text: "create configmaps shop/cart", Write: true, Counts: true},
		},
		"create from protobuf": {
			method: "POST", path: "/api/v1/namespaces/shop/configmaps",
			body: inProtobuf(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}),
			want: want{Text: "create configmaps shop/cart", Write: true, Counts: true},
		},
		"create with a generated name": {
			method: "POST", path: "/api/v1/namespaces/shop/pods",
			body: []byte(`{"metadata":{"generateName":"cart-"}}`),
			want: want{Text: "create pods shop/cart-*", Write: true, Counts: true},
		},
		"apply, cluster-scoped": {
			method: "PATCH", path: "/apis/sailoperator.io/v1/istios/default?fieldManager=fairlead&force=true",
			want: want{Text: "patch istios.sailoperator.io default", Write: true, Counts: true},
		},
		"status": {
			method: "PUT", path: "/apis/apps/v1/namespaces/shop/deployments/web/status",
			want: want{Text: "update deployments.apps/status shop/web", Write: true, Counts: true},
		},
		"delete": {
			method: "DELETE", path: "/api/v1/namespaces/shop",
			want: want{Text: "delete namespaces shop", Write: true, Counts: true},
		},
		"delete collection": {
			method: "DELETE", path: "/api/v1/namespaces/shop/pods",
			want: want{Text: "deletecollection pods shop/", Write: true, Counts: true},
		},
		"dry run": {
			method: "PATCH", path: "/api/v1/namespaces/shop/secrets/a?dryRun=All",
			want: want{Text: "patch secrets shop/a"},
		},
		"access review": {
			method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", body: []byte(`{}`),
			want: want{Text: "create subjectaccessreviews.authorization.k8s.io", Write: true},
		},
		"token request": {
			method: "POST", path: "/api/v1/namespaces/shop/serviceaccounts/bot/token", body: []byte(`{}`),
			want: want{Text: "create serviceaccounts/token shop/bot", Write: true},
		},
		"lease": {
			method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/shop/leases/leader",
			want: want{Text: "update leases.coordination.k8s.io shop/leader", Write: true},
		},
		"event": {
			method: "POST", path: "/apis/events.k8s.io/v1/namespaces/shop/events", body: []byte(`{"metadata":{"name":"e"}}`),
			want: want{Text: "create events.events.k8s.io shop/e", Write: true},
		},
		"discovery": {
			method: "GET", path: "/apis",
			want: want{Text: "get /apis"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(tc.method, "https://127.0.0.1"+tc.path, bytes.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			r := describe(req)
			got := want{Text: r.String(), Write: r.Writes(), Counts: Write(r)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func inProtobuf(t *testing.T, obj runtime.Object) []byte {
	t.Helper()
	encoder := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), corev1.SchemeGroupVersion)
	raw, err := runtime.Encode(encoder, obj)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
