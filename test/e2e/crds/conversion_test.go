package crds_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
)

// convertBoats keeps in v2's crew what v1 calls mate.
func convertBoats(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		var boat unstructured.Unstructured
		if err := json.Unmarshal(raw.Raw, &boat.Object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if spec, ok := boat.Object["spec"].(map[string]any); ok && boat.GetAPIVersion() != review.Request.DesiredAPIVersion {
			from, to := "mate", "crew"
			if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
				from, to = to, from
			}
			if value, has := spec[from]; has {
				spec[to] = value
				delete(spec, from)
			}
		}
		boat.SetAPIVersion(review.Request.DesiredAPIVersion)
		text, err := json.Marshal(boat.Object)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: text})
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(w).Encode(review)
}

// shipyard is a webhook that converts boats.
func shipyard(t testing.TB) *crds.Webhook {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(convertBoats))
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &crds.Webhook{URL: server.URL, Trust: crds.StaticTrust(bundle)}
}

// firstBoats are as the first Fairlead had them: with a mate and one version.
func firstBoats(plural string) *crdBuilder { return makeCRD(plural).Schema(1).Field("mate") }

// nextBoats have a crew instead, and v1 beside that.
func nextBoats(plural string) *crdBuilder {
	b := makeCRD(plural).Schema(2).Next("v2", "crew")
	b.crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["mate"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	return b
}

// seed makes boats that are stored as v1.
func (h *hub) seed(plural string, names ...string) map[string]*unstructured.Unstructured {
	h.t.Helper()
	h.install(firstBoats(plural).Obj(), crds.Options{}).is(crds.Created, "")
	boats := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		boat := newBoat(plural, name)
		unstructured.SetNestedField(boat.Object, "mate of "+name, "spec", "mate")
		h.eventually("a boat to be accepted", func() bool { return h.Create(h.t.Context(), boat) == nil })
		boats[name] = boat
	}
	return boats
}

func (h *hub) boatAs(version, plural, name string) (*unstructured.Unstructured, error) {
	boat := newBoat(plural, name)
	boat.SetGroupVersionKind(schema.GroupVersionKind{Group: "harbour.test", Version: version, Kind: kindOf(plural)})
	return boat, h.Get(h.t.Context(), client.ObjectKeyFromObject(boat), boat)
}

func (h *hub) sails(version, plural, name, field, want string) {
	h.t.Helper()
	var got string
	h.eventually(version+" of "+name+" to have the "+field+" "+want, func() bool {
		boat, err := h.boatAs(version, plural, name)
		if err != nil {
			return false
		}
		got, _, _ = unstructured.NestedString(boat.Object, "spec", field)
		return got == want
	})
}

func TestUpgradeToSeveralVersions(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.seed(boats, "heron")
	want := nextBoats(boats).Obj()

	refused := h.install(want, crds.Options{})
	if refused.result.Outcome != crds.NeedsWebhook || refused.err == nil || !strings.Contains(refused.err.Error(), "--webhook-service") {
		t.Errorf("without a webhook: %+v, %v", refused.result, refused.err)
	}
	if live := h.get(want.Name); len(live.Spec.Versions) != 1 {
		t.Error("it was not left as it was")
	}

	h.install(want, crds.Options{Webhook: shipyard(t)}).is(crds.Updated, "from schema version 1 to 2")
	h.sails("v2", boats, "heron", "crew", "mate of heron")
	h.sails("v1", boats, "heron", "mate", "mate of heron")
	h.install(want, crds.Options{}).is(crds.Unchanged, "")
	if strategy := h.get(want.Name).Spec.Conversion.Strategy; strategy != apiextensionsv1.WebhookConverter {
		t.Errorf("an install that knows of no webhook left the strategy %s", strategy)
	}
}

func TestNewCRDOfSeveralVersions(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats, crews := h.fresh("boats"), h.fresh("crews")

	h.install(nextBoats(boats).Obj(), crds.Options{}).is(crds.Created, "")
	if live := h.get(boats + ".harbour.test"); live.Spec.Versions[0].Served || live.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Error("v1 is served although nobody converts it")
	}
	h.install(nextBoats(boats).Obj(), crds.Options{}).is(crds.Unchanged, "")
	hook := shipyard(t)
	h.install(nextBoats(boats).Obj(), crds.Options{Webhook: hook}).is(crds.Repaired, "the CRD differed from schema version 2")
	h.install(nextBoats(crews).Obj(), crds.Options{Webhook: hook}).is(crds.Created, "")
	for _, plural := range []string{boats, crews} {
		live := h.get(plural + ".harbour.test")
		if !live.Spec.Versions[0].Served || live.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
			t.Errorf("%s: v1 is not served although it can be converted", plural)
		}
		h.install(nextBoats(plural).Obj(), crds.Options{Webhook: hook}).is(crds.Unchanged, "")
	}
}

func TestTakeOverWithObjectsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	theirs := firstBoats(boats).Obj()
	theirs.Annotations = nil
	if err := h.Create(t.Context(), theirs, client.FieldOwner("orchestrator")); err != nil {
		t.Fatal(err)
	}
	h.eventually("the CRD to be established", func() bool { return established(h.get(theirs.Name)) == nil })
	boat := newBoat(boats, "heron")
	unstructured.SetNestedField(boat.Object, "bosun", "spec", "mate")
	h.eventually("a boat to be accepted", func() bool { return h.Create(t.Context(), boat) == nil })
	want := nextBoats(boats).Obj()

	h.install(want, crds.Options{TakeOver: true}).is(crds.TakenOver, "the CRD was managed by orchestrator; the operator brings its new schema, "+
		"because objects are stored as v1, and only a webhook converts them to v2")
	if live := h.get(want.Name); len(live.Spec.Versions) != 1 {
		t.Error("its schema was changed too")
	}
	h.install(want, crds.Options{Webhook: shipyard(t)}).is(crds.Updated, "from schema version 0 to 2")
	h.sails("v2", boats, "heron", "crew", "bosun")
}

func TestConversionFollowsTheOperator(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.seed(boats, "heron")
	want := nextBoats(boats).Obj()
	first, second := shipyard(t), shipyard(t)
	at := func() string { return *h.get(want.Name).Spec.Conversion.Webhook.ClientConfig.URL }

	h.install(want, crds.Options{Webhook: first}).is(crds.Updated, "from schema version 1 to 2")
	h.install(want, crds.Options{Webhook: second}).is(crds.Unchanged, "")
	if at() != first.URL+crds.ConversionPath {
		t.Error("one that does not lead took the conversion from one that serves")
	}
	elected := make(chan struct{})
	second.Elected = elected
	go func() {
		_ = second.ReconcileConversion(t.Context(), h.cfg, crds.ReconcileConversionOptions{
			CRDs: []*apiextensionsv1.CustomResourceDefinition{want}, Every: time.Hour, Log: logr.Discard(),
		})
	}()
	close(elected)
	h.eventually("the one that leads to take the conversion", func() bool { return at() == second.URL+crds.ConversionPath })
	h.sails("v2", boats, "heron", "crew", "mate of heron")

	byService := *first
	byService.Service = &apiextensionsv1.ServiceReference{Namespace: "default", Name: "kubernetes"}
	h.install(want, crds.Options{Webhook: &byService}).is(crds.Repaired, "the CRD differed from schema version 2")
	h.install(want, crds.Options{Webhook: first}).is(crds.Unchanged, "")
	if service := h.get(want.Name).Spec.Conversion.Webhook.ClientConfig.Service; service == nil {
		t.Error("one that was started by hand took the conversion from a Service that is there")
	}
	byService.Service.Name = "gone"
	h.install(want, crds.Options{Webhook: &byService}).is(crds.Repaired, "the CRD differed from schema version 2")
	h.install(want, crds.Options{Webhook: first}).is(crds.Repaired, "the CRD differed from schema version 2")
	if at() != first.URL+crds.ConversionPath {
		t.Error("a Service that is gone still has the conversion")
	}
}
