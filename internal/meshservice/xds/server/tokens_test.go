package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

var cartPod = &metav1.OwnerReference{Name: "cart-0", UID: "uid-0"}

// reviewed is what the API server says of the token of the cart's pod, changed.
func reviewed(change func(*authenticationv1.TokenReviewStatus)) authenticationv1.TokenReviewStatus {
	s := authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{Audience},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:default", Extra: map[string]authenticationv1.ExtraValue{
			extraPodName: {cartPod.Name}, extraPodUID: {string(cartPod.UID)},
		}},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestVouched(t *testing.T) {
	type change = func(*authenticationv1.TokenReviewStatus)
	extra := func(key string, values ...string) change {
		return func(s *authenticationv1.TokenReviewStatus) { s.User.Extra[key] = values }
	}
	user := func(name string) change {
		return func(s *authenticationv1.TokenReviewStatus) { s.User.Username = name }
	}
	for name, c := range map[string]struct {
		change change
		known  bool
		code   codes.Code
		says   string
	}{
		"its own": {nil, true, codes.OK, ""},
		"expired": {func(s *authenticationv1.TokenReviewStatus) {
			*s = authenticationv1.TokenReviewStatus{Error: "token has expired"}
		}, true, codes.Unauthenticated, "token has expired: mount a token for the audience fairlead-mesh"},
		"not authenticated": {func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }, true, codes.Unauthenticated, "is not valid"},
		"another audience":  {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"api"} }, true, codes.Unauthenticated, "the audience is not fairlead-mesh"},
		"no audience":       {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }, true, codes.Unauthenticated, "the audience is not fairlead-mesh"},
		"no Dataplane":      {nil, false, codes.Unavailable, "Dataplane shop/cart-0 does not exist"},
		"another namespace": {user("system:serviceaccount:bank:default"), true, codes.PermissionDenied, "needs one of a service account in namespace shop"},
		"not an account":    {user("shop:default"), true, codes.PermissionDenied, "the token is of shop:default"},
		"a user":            {user("system:serviceaccount:shop"), true, codes.PermissionDenied, "service account"},
		"another pod":       {extra(extraPodName, "cart-1"), true, codes.PermissionDenied, `pod "cart-1" with UID "uid-0": proxy default.cart-0.shop needs one of pod "cart-0" with UID "uid-0"`},
		"an earlier pod":    {extra(extraPodUID, "uid-before"), true, codes.PermissionDenied, `UID "uid-before"`},
		"of no pod":         {func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil }, true, codes.PermissionDenied, `pod ""`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := cartPod
			if !c.known {
				pod = nil
			}
			err := checkToken(reviewed(c.change), cart, pod)
			if status.Code(err) != c.code || (err != nil && !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %s: %s", err, c.code, c.says)
			}
		})
	}
}

// reviewer stands for an API server, whose word it is that is looked at here, not how it is found.
type reviewer struct {
	typedauthenticationv1.TokenReviewInterface
	asked  atomic.Int64
	review func(token string) (authenticationv1.TokenReviewStatus, error)
}

func (r *reviewer) Create(_ context.Context, in *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.asked.Add(1)
	if len(in.Spec.Audiences) != 1 || in.Spec.Audiences[0] != Audience {
		return nil, fmt.Errorf("asked for the audiences %v", in.Spec.Audiences)
	}
	said, err := parseClaims(in.Spec.Token)
	if err != nil {
		return nil, err
	}
	s, err := r.review(said.ID)
	return &authenticationv1.TokenReview{Status: s}, err
}

func podOfCart(id model.ProxyID) *metav1.OwnerReference {
	if id != cart {
		return nil
	}
	return cartPod
}

func with(token string) context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", "Bearer "+token))
}

// tokenOf is a token of the cart's pod with this id, changed, and signed by nobody: it is the API server that looks at the
// signature.
func tokenOf(id string, change func(claims map[string]any)) string {
	said := map[string]any{
		"jti": id, "iss": "https://cluster.local", "aud": []string{Audience}, "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "shop", "pod": map[string]any{"name": cartPod.Name, "uid": cartPod.UID}},
	}
	if change != nil {
		change(said)
	}
	payload, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"ES256","kid":"x"}`)) + "." + encode(payload) + "." + encode([]byte("signature"))
}

func TestTokens(t *testing.T) {
	api := &reviewer{review: func(token string) (authenticationv1.TokenReviewStatus, error) {
		switch token {
		case "good":
			return reviewed(nil), nil
		case "down":
			return authenticationv1.TokenReviewStatus{}, errors.New("the API server is down")
		default:
			return authenticationv1.TokenReviewStatus{Error: "unknown"}, nil
		}
	}}
	tokens := NewTokens(api, podOfCart, 1000)
	for name, c := range map[string]struct {
		ctx  context.Context
		code codes.Code
	}{
		"good":  {with(tokenOf("good", nil)), codes.OK},
		"wrong": {with(tokenOf("wrong", nil)), codes.Unauthenticated},
		"down":  {with(tokenOf("down", nil)), codes.Unavailable},
		"none":  {context.Background(), codes.Unauthenticated},
		"basic": {metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", "Basic good")), codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tokens.Identify(c.ctx, cart); status.Code(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if err := ByCertificate(tokens.Identify)(c.ctx, cart); status.Code(err) != c.code {
				t.Errorf("without a certificate: %v, want %s", err, c.code)
			}
		})
	}
	// A good token is good for one proxy, however often it was reviewed.
	other := model.ProxyID{Mesh: "default", Namespace: "bank", Name: "vault-0"}
	if err := tokens.Identify(with(tokenOf("good", nil)), other); err == nil {
		t.Error("the token of one pod is good for another")
	}
}

func TestReviewsAreRememberedForAWhile(t *testing.T) {
	api := &reviewer{review: func(string) (authenticationv1.TokenReviewStatus, error) { return reviewed(nil), nil }}
	tokens := NewTokens(api, podOfCart, 100*maxReviews)
	clock := testingclock.NewFakeClock(time.Now())
	tokens.valid = cache.NewLRUExpireCacheWithClock(maxReviews, clock)
	ask := func(token string) {
		t.Helper()
		if _, err := tokens.review(t.Context(), tokenOf(token, nil), "https://cluster.local"); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		ask("one")
	}
	clock.Step(reviewTTL + 1)
	ask("one")
	if got := api.asked.Load(); got != 2 {
		t.Errorf("the API server was asked %d times", got)
	}
	for i := range 2 * maxReviews {
		ask(fmt.Sprint(i))
	}
	if got := len(tokens.valid.Keys()); got > maxReviews {
		t.Errorf("%d reviews are remembered", got)
	}
}

// A token that no longer holds ends the stream, and one that cannot be reviewed does not.
func TestTokenEnds(t *testing.T) {
	var stage atomic.Int64
	api := &reviewer{review: func(string) (authenticationv1.TokenReviewStatus, error) {
		switch stage.Load() {
		case 0:
			return reviewed(nil), nil
		case 1:
			return authenticationv1.TokenReviewStatus{}, errors.New("the API server is down")
		default:
			return authenticationv1.TokenReviewStatus{Error: "token has expired"}, nil
		}
	}}
	tokens := NewTokens(api, podOfCart, 1000)
	tokens.ttl = 0
	store := NewStore()
	store.Set(cart, config(1, "a"))
	connection := dial(t, serve(t, Options{Store: store, Identify: tokens.Identify, RecheckInterval: 5 * time.Millisecond}, nil), nil)
	m := connectWith(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tokenOf("x", nil)), t, connection, cart.String(), true)
	m.ask(resource.Listener)
	eventually(t, "its listener", func() bool { return m.knows(resource.Listener) == "a" })
	stage.Store(1)
	asked := api.asked.Load()
	eventually(t, "some reviews that fail", func() bool { return api.asked.Load() > asked+5 })
	if !store.Connection(cart).Connected {
		t.Fatal("the stream has ended because a review has failed")
	}
	stage.Store(2)
	if err := m.end(t); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "token has expired") {
		t.Error(err)
	}
}
