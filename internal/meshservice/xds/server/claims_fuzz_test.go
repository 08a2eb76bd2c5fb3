package server

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzClaims: of a token that nobody has verified, only one that says all that it has to is worth a review, whatever else it says.
func FuzzClaims(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	encode := base64.RawURLEncoding.EncodeToString
	for _, payload := range []string{
		`{"aud":["fairlead-mesh"],"exp":1800000600,"iss":"https://kubernetes","kubernetes.io":{"namespace":"shop","pod":{"name":"cart-0","uid":"u"}}}`,
		`{"aud":"fairlead-mesh","exp":1.8e9,"nbf":-1,"iss":"x","kubernetes.io":{"namespace":"shop","pod":{"name":"cart-0","uid":"u"}}}`,
		`{"aud":[],"exp":null,"iss":7}`, `{"exp":9e99}`, `{"aud":"fairlead-mesh","aud":"other","kubernetes.io":[]}`, `[]`, `null`, ``,
	} {
		f.Add(encode([]byte(`{"alg":"RS256","kid":"a"}`))+"."+encode([]byte(payload))+"."+encode([]byte("signature")), true)
	}
	f.Add(encode([]byte(`{"alg":"none"}`))+"."+encode([]byte(`{}`))+".", false)
	f.Add("a.b.c", false)
	f.Fuzz(func(t *testing.T, token string, known bool) {
		c, err := parseClaims(token)
		if err != nil {
			return
		}
		var pod *metav1.OwnerReference
		if known {
			pod = &metav1.OwnerReference{Name: cart.Name, UID: "u"}
		}
		if err := c.check(cart, pod, now); err != nil {
			if text := err.Error(); len(text) > 3*len(token)+1000 {
				t.Errorf("the refusal of %d bytes has %d", len(token), len(text))
			}
			return
		}
		switch {
		case !slices.Contains(c.Audience, Audience), c.Issuer == "", c.Expiry == nil, now.Sub(c.Expiry.Time()) > clockSkew, c.Kubernetes.Namespace != cart.Namespace,
			known && (c.Kubernetes.Pod.Name != cart.Name || c.Kubernetes.Pod.UID != "u"):
			t.Errorf("%+v is worth a review", c)
		}
	})
}
