package adoption_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// writes are the requests to write into one namespace, also those that change nothing: a webhook is asked about all.
type writes struct {
	mu     sync.Mutex
	probed bool
	hubs   map[string]int
	// unavailable has hubs told that the server does not serve.
	unavailable bool
}

// fail has the writes of hubs fail, as those to a server that is starting, until they are released.
func (w *writes) fail() (release func()) {
	set := func(unavailable bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unavailable = unavailable
	}
	set(true)
	return func() { set(false) }
}

// recordWrites records those of a member from now on, of the kinds that tests take over.
func (s *stage) recordWrites(t testing.TB, where *site) *writes {
	t.Helper()
	w := &writes{hubs: map[string]int{}}
	server := httptest.NewTLSServer(http.HandlerFunc(w.decide))
	t.Cleanup(server.Close)
	hook := &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "writes.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(registrationv1.SideEffectClassNone),
			TimeoutSeconds: ptr.To[int32](30),
			ClientConfig: registrationv1.WebhookClientConfig{
				URL: ptr.To(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.OperationAll},
				Rule: registrationv1.Rule{
					APIGroups: []string{"", "apps", "batch"}, APIVersions: []string{"v1"}, Resources: []string{"configmaps", "services", "deployments", "jobs"},
				},
			}},
		}},
	}
	if err := where.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := where.Delete(context.Background(), hook); err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, func(ctx context.Context) error {
		probe := configMap("probe")
		probe.Namespace = s.namespace
		if err := where.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.probed {
			return errors.New("the webhook is not asked yet")
		}
		return nil
	})
	return w
}

func (w *writes) decide(response http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(response, fmt.Sprint("no review: ", err), http.StatusBadRequest)
		return
	}
	asked := review.Request
	answer := &admissionv1.AdmissionResponse{UID: asked.UID, Allowed: true}
	w.mu.Lock()
	w.probed = true
	if !ptr.Deref(asked.DryRun, false) && strings.HasPrefix(asked.UserInfo.Username, "system:serviceaccount:fairlead-member:") {
		w.hubs[fmt.Sprintf("%s %s %s", asked.Operation, asked.Resource.Resource, asked.Name)]++
		if w.unavailable {
			answer.Allowed, answer.Result = false, &metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "starting"}
		}
	}
	w.mu.Unlock()
	review.Response = answer
	_ = json.NewEncoder(response).Encode(review)
}

// byHubs are those of the hubs that the member has joined.
func (w *writes) byHubs() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.hubs)
}
