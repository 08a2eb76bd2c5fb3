package uninstall

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// An API server that has not seen yet that a CRD has no webhook any more calls that of the operator, which has ended.
func TestRemoveHeldUntilConversionIsRemoved(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, code := any(map[string]any{"apiVersion": "materialize.cloud/v1alpha2", "kind": "MaterializeList", "items": []any{}}), http.StatusOK
		if strings.HasSuffix(r.URL.Path, "/v1alpha2/materializes") {
			if asked++; asked <= 2 {
				err := apierrors.NewInternalError(http.ErrServerClosed)
				answer, code = err.Status(), http.StatusInternalServerError
			}
		} else {
			answer, code = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}, http.StatusNotFound
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	if err := removeHeld(t.Context(), &rest.Config{Host: server.URL}); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
