package charts

import (
	"errors"
	"testing"
)

func TestRefusal(t *testing.T) {
	for text, final := range map[string]bool{
		"reading https://example.org/istio.io/istio/@v/v0.0.0.info: 403 Forbidden":  true,
		"reading https://example.org/istio.io/istio/@v/v0.0.0.info: 404 Not Found":  true,
		"reading https://example.org/istio.io/istio/@v/v0.0.0.zip: 410 Gone":        true,
		"dial tcp: lookup example.org: no such host":                                false,
		"reading https://example.org/istio.io/istio/@v/v0.0.0.zip: 502 Bad Gateway": false,
	} {
		if got := refusal(text); errors.Is(got, errNotServed) != final {
			t.Errorf("%q is %v", text, got)
		}
	}
}
