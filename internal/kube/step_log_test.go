package kube

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead/fairlead/internal/passage"
)

// The keys are a contract: docs/monitoring.md lists them.
func TestKeysOfAStep(t *testing.T) {
	for want, step := range map[string]passage.Step{
		`{"logger":"","level":0,"msg":"applied a step","passage":"revision","action":"install","object":"Release istio-system/istiod","from":"","to":"v1.26.0","reason":""}`: {
			Object: passage.Object{Kind: "Release", Namespace: "istio-system", Name: "istiod"}, Action: "install", To: "v1.26.0",
		},
		`{"logger":"","level":0,"msg":"applied a step","passage":"revision","action":"restart","object":"Deployment shop/cart","from":"a","to":"b","reason":"Behind: runs on a","cluster":"east","batch":2}`: {
			Object: passage.Object{Kind: "Deployment", Namespace: "shop", Name: "cart", Cluster: "east"}, Action: "restart", From: "a", To: "b", Batch: 2,
			Reason: passage.Because("Behind", "runs on a"),
		},
	} {
		var got string
		logger := funcr.NewJSON(func(line string) { got = line }, funcr.Options{})
		LogStep(log.IntoContext(t.Context(), logger), "revision", step)
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}
