package versions

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/operator/lease"
)

// TestObserveWhatAUserMayRead asks an API server that grants to read leases, or nothing.
func TestObserveWhatAUserMayRead(t *testing.T) {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		granted bool
		want    Operator
	}{
		"leases":  {true, Operator{Passages: []string{"revision"}, Version: "v0.1.0", Leader: "pod-1"}},
		"nothing": {false, Operator{Unknown: "you may not get the Lease kube-system/fairlead-revision"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				refuse := func(code int, reason metav1.StatusReason) {
					w.WriteHeader(code)
					_ = json.NewEncoder(w).Encode(metav1.Status{
						TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
					})
				}
				leases := "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"
				switch {
				case !c.granted || !strings.HasPrefix(r.URL.Path, leases):
					refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
				case r.URL.Path == leases+"fairlead-revision":
					_ = json.NewEncoder(w).Encode(coordinationv1.Lease{
						TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
						ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "fairlead-revision", Labels: map[string]string{lease.VersionLabel: "v0.1.0"}},
						Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1"), RenewTime: ptr.To(metav1.NewMicroTime(now))},
					})
				default:
					refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
				}
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
			operators, schemas := Observe(t.Context(), config, now)
			if diff := cmp.Diff([]Operator{c.want}, operators); diff != "" {
				t.Error(diff)
			}
			if schemas.Unknown != "you may not list CustomResourceDefinitions" {
				t.Errorf("%+v", schemas)
			}
		})
	}
}
