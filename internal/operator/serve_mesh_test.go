package operator

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The name of a process becomes that of its reports.
func TestReplicaName(t *testing.T) {
	for host, want := range map[string]string{
		"fairlead-mesh-7d4b9-x2v5k": "fairlead-mesh-7d4b9-x2v5k-abcde",
		"Node_1.example.org":        "node-1-example-org-abcde",
		"--":                        "abcde",
		"":                          "abcde",
		strings.Repeat("a", 300):    strings.Repeat("a", maxHostName) + "-abcde",
	} {
		got := replicaName(host, "abcde")
		if got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
		if wrong := validation.IsDNS1123Subdomain(got + "-15"); len(wrong) > 0 {
			t.Errorf("%s: %v", got, wrong)
		}
	}
}
