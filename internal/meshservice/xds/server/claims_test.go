package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func set(key string, value any) func(map[string]any) {
	return func(claims map[string]any) { claims[key] = value }
}

func boundTo(namespace, pod, uid string) func(map[string]any) {
	return set("kubernetes.io", map[string]any{"namespace": namespace, "pod": map[string]any{"name": pod, "uid": uid}})
}

// What is wrong with a token on the face of it is no business of the API server.
func TestTokensThatAreNotReviewed(t *testing.T) {
	api := &reviewer{review: func(string) (authenticationv1.TokenReviewStatus, error) { return reviewed(nil), nil }}
	tokens := NewTokens(api, podOfCart, 1000)
	other := model.ProxyID{Mesh: "default", Namespace: "shop", Name: "cart-1"}
	for name, c := range map[string]struct {
		token string
		of    model.ProxyID
		code  codes.Code
		says  string
		// early says that it is known before there is a Dataplane.
		early bool
	}{
		"no token at all":     {"nonsense", cart, codes.Unauthenticated, "this is no service account token", true},
		"not signed":          {strings.Replace(tokenOf("x", nil), strings.Split(tokenOf("x", nil), ".")[0], "eyJhbGciOiJub25lIn0", 1), cart, codes.Unauthenticated, "this is no service account token", true},
		"another audience":    {tokenOf("x", set("aud", []string{"api"})), cart, codes.Unauthenticated, "the audience is not fairlead-mesh", true},
		"expired":             {tokenOf("x", set("exp", time.Now().Add(-time.Hour).Unix())), cart, codes.Unauthenticated, "token has expired at", true},
		"without an end":      {tokenOf("x", func(c map[string]any) { delete(c, "exp") }), cart, codes.Unauthenticated, "no expiry", true},
		"of nobody":           {tokenOf("x", func(c map[string]any) { delete(c, "iss") }), cart, codes.Unauthenticated, "no issuer", true},
		"another namespace":   {tokenOf("x", boundTo("bank", "cart-0", "uid-0")), cart, codes.PermissionDenied, "needs one of a service account in namespace shop", true},
		"another pod":         {tokenOf("x", boundTo("shop", "cart-1", "uid-0")), cart, codes.PermissionDenied, `the token is of pod "cart-1" with UID "uid-0": proxy default.cart-0.shop needs one of its own pod`, false},
		"an earlier pod":      {tokenOf("x", boundTo("shop", "cart-0", "uid-before")), cart, codes.PermissionDenied, `UID "uid-before"`, false},
		"of no pod":           {tokenOf("x", boundTo("shop", "", "")), cart, codes.PermissionDenied, `pod ""`, false},
		"without a Dataplane": {tokenOf("x", nil), other, codes.Unavailable, "Dataplane shop/cart-1 does not exist", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := tokens.Identify(with(c.token), c.of)
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s: %s", err, c.code, c.says)
			}
			if strings.Contains(err.Error(), "uid-0") && !strings.Contains(c.token, "uid-0") && name != "another pod" {
				t.Errorf("the client is told the UID of the pod: %v", err)
			}
			if early := tokens.Precheck(with(c.token), c.of); (early != nil) != c.early {
				t.Errorf("before there is a Dataplane: %v", early)
			}
		})
	}
	if got := api.asked.Load(); got != 0 {
		t.Errorf("%d tokens were reviewed", got)
	}
	if err := tokens.Identify(with(tokenOf("its own", set("aud", Audience))), cart); err != nil {
		t.Errorf("its own, for one audience: %v", err)
	}
}

// Whoever knows the UID of a pod can have tokens reviewed, and no more than so many in a second.
func TestReviewsAreLimited(t *testing.T) {
	const perSecond, forged = 20, 500
	api := &reviewer{review: func(id string) (authenticationv1.TokenReviewStatus, error) {
		if id == "good" {
			return reviewed(nil), nil
		}
		return authenticationv1.TokenReviewStatus{Error: "the signature is wrong"}, nil
	}}
	tokens := NewTokens(api, podOfCart, perSecond)
	if err := tokens.Identify(with(tokenOf("good", nil)), cart); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, forged)
	began := time.Now()
	for i := range forged {
		go func() {
			ctx, cancel := contextWithin(with(tokenOf(fmt.Sprint(i), nil)))
			defer cancel()
			ended <- tokens.Identify(ctx, cart)
		}()
	}
	for range forged {
		if err := <-ended; err == nil {
			t.Error("a forged token is believed")
		}
	}
	if got, most := api.asked.Load(), perSecond+1+int64(time.Since(began).Seconds()*perSecond)+1; got > most {
		t.Errorf("%d tokens were reviewed, want %d at most", got, most)
	}
	// Those that gave up have taken no turn of one that comes later, and the answer for the good one is still known.
	if err := tokens.Identify(with(tokenOf("good", nil)), cart); err != nil {
		t.Error(err)
	}
}

// Tokens of an issuer that the API server has confirmed do not wait for those of others.
func TestUnknownIssuers(t *testing.T) {
	api := &reviewer{review: func(id string) (authenticationv1.TokenReviewStatus, error) {
		if strings.HasPrefix(id, "good") {
			return reviewed(nil), nil
		}
		return authenticationv1.TokenReviewStatus{Error: "the issuer is unknown"}, nil
	}}
	tokens := NewTokens(api, podOfCart, 1000)
	tokens.TrustIssuer(tokenOf("own", nil))
	tokens.TrustIssuer("nonsense")
	waiting := make(chan error, 100)
	ctx, cancel := contextWithin(t.Context())
	for i := range cap(waiting) {
		go func() {
			_, err := tokens.review(ctx, tokenOf(fmt.Sprint(i), set("iss", "https://elsewhere")), "https://elsewhere")
			waiting <- err
		}()
	}
	for i := range 50 {
		if err := tokens.Identify(with(tokenOf(fmt.Sprint("good", i), nil)), cart); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	reviewed := 0
	for range cap(waiting) {
		if err := <-waiting; err == nil {
			reviewed++
		}
	}
	if reviewed == cap(waiting) {
		t.Error("tokens of an unknown issuer are reviewed like all others")
	}
}
