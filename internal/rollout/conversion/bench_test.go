package conversion

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const typical = `
metadata:
  name: mz
  namespace: shop
  uid: 7d3c5e0e-3a52-4c4b-9a73-0b7a5b1f5a10
  resourceVersion: "123456"
  generation: 7
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {team: data}
  annotations: {materialize.cloud/force-rollout: again}
  managedFields:
  - {manager: kubectl, operation: Apply, apiVersion: VERSION, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:backendSecretName": {}, "f:environmentdExtraArgs": {}, "f:environmentdExtraEnv": {}, "f:environmentdImageRef": {}, "f:environmentdResourceRequirements": {"f:limits": {"f:cpu": {}, "f:memory": {}}, "f:requests": {"f:cpu": {}, "f:memory": {}}}, "f:internalCertificateSpec": {"f:dnsNames": {}, "f:duration": {}, "f:issuerRef": {"f:kind": {}, "f:name": {}}}, "f:podLabels": {"f:team": {}}}}}
  - {manager: fairlead/rollout, operation: Apply, apiVersion: VERSION, subresource: status, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:activeGeneration": {}, "f:conditions": {'k:{"type":"UpToDate"}': {".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {}}}, "f:resourceId": {}}}}
spec:
  environmentdImageRef: materialize/environmentd:v0.150.0
  backendSecretName: backend
  environmentdExtraArgs: [--log-filter=info, --announce-egress-address=10.0.0.1/32]
  environmentdExtraEnv: [{name: A, value: one}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}]
  environmentdResourceRequirements: {limits: {cpu: "4", memory: 16Gi}, requests: {cpu: "2", memory: 16Gi}}
  balancerdReplicas: 2
  consoleReplicas: 2
  authenticatorKind: None
  rolloutStrategy: WaitUntilReady
  rolloutRequestTimeout: 24h
  podLabels: {team: data}
  internalCertificateSpec: {dnsNames: [mz.shop.svc], duration: 2160h, issuerRef: {name: ca, kind: ClusterIssuer}}
`

// little is the least that the API server may have stored when v1alpha1 was reconciled.
const little = `
metadata:
  name: mz
  namespace: shop
  uid: 7d3c5e0e-3a52-4c4b-9a73-0b7a5b1f5a10
  resourceVersion: "123456"
  generation: 1
  creationTimestamp: "2026-01-01T00:00:00Z"
spec: {environmentdImageRef: e:1, backendSecretName: b}
status: {resourcesHash: x}
`

const upToDate = `
  activeGeneration: 3
  resourceId: abcdefghij
  lastCompletedRolloutEnvironmentdImageRef: materialize/environmentd:v0.150.0
  conditions: [{type: UpToDate, status: "True", reason: Applied, message: all is rolled out, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

// BenchmarkConvert compares the conversion of an object with what its JSON costs in any case: to parse it and to write it.
func BenchmarkConvert(b *testing.B) {
	native := "  requestRollout: " + one + "\nstatus:" + upToDate + "  lastCompletedRolloutRequest: " + one + "\n  resourcesHash: x\n"
	hashed := "status:" + upToDate + "  requestedRolloutHash: h\n  lastCompletedRolloutHash: h\n  rolloutHashVersion: 1\n"
	cases := map[string]struct{ from, to, rest string }{
		"v1alpha1 from before": {older, newer, typical + native},
		"v1alpha1 with hashes": {older, newer, typical + hashed},
		"v1alpha2 to v1alpha1": {newer, older, typical + hashed},
		"v1alpha1 with little": {older, newer, little},
	}
	for name, c := range cases {
		b.Run(name, func(b *testing.B) {
			text := encode(b, object(b, c.from, strings.ReplaceAll(c.rest, "VERSION", c.from)))
			var parsing, converting time.Duration
			for b.Loop() {
				start := time.Now()
				var object map[string]any
				if err := utiljson.Unmarshal(text, &object); err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(object); err != nil {
					b.Fatal(err)
				}
				parsed := time.Now()
				if _, err := Convert(object, c.to); err != nil {
					b.Fatal(err)
				}
				parsing += parsed.Sub(start)
				converting += time.Since(parsed)
			}
			ratio := float64(converting) / float64(parsing)
			b.ReportMetric(float64(parsing.Nanoseconds())/float64(b.N), "parse+write-ns/op")
			b.ReportMetric(float64(converting.Nanoseconds())/float64(b.N), "convert-ns/op")
			b.ReportMetric(ratio, "ratio")
			b.ReportMetric(0, "ns/op")
			if ratio > 1 {
				b.Errorf("to convert an object costs %.2f times what its JSON costs", ratio)
			}
		})
	}
}

// BenchmarkReview is a whole review of 500 objects, without the network.
func BenchmarkReview(b *testing.B) {
	text := encode(b, object(b, newer, strings.ReplaceAll(typical, "VERSION", newer)+"status:"+upToDate+"  rolloutHashVersion: 1\n"))
	body := review(older, slices.Repeat([]string{string(text)}, 500)...)
	handler := Handler(logr.Discard(), DefaultMemory)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(body)))
		if w.Code != http.StatusOK || w.Body.Len() < 500*len(text) {
			b.Fatal(w.Code, w.Body)
		}
	}
}
