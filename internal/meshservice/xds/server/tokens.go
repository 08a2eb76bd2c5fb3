package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Audience is the audience of a proxy's token.
const Audience = "fairlead-mesh"

// Keys of the pod that a token was issued for, in a TokenReview.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

const (
	// reviewTTL is how long a TokenReview is cached.
	reviewTTL  = time.Minute
	maxReviews = 4096
	// maxReviewsAtOnce bounds the TokenReviews that the API server works on: the operator's other requests, that for its lease
	// among them, wait in the same queue.
	maxReviewsAtOnce = 16
	// unknownIssuerReviews is how many tokens of unknown issuers are reviewed in a second.
	unknownIssuerReviews = 5
)

// Tokens authenticates by a service account token that is bound to the proxy's pod and issued for Audience. What a token says
// is checked before the API server is asked whether it is true.
type Tokens struct {
	reviews typedauthenticationv1.TokenReviewInterface
	pod     func(model.ProxyID) *metav1.OwnerReference
	ttl     time.Duration

	// valid and invalid have the status of reviews by the hash of the token: invalid tokens do not displace valid ones.
	valid, invalid *cache.LRUExpireCache
	issuers        issuers
	// gate is that of all tokens, and unknownIssuers that of some before it.
	gate, unknownIssuers *rateGate
	atOnce               chan struct{}
}

// NewTokens returns an Identifier with these TokenReviews, so many a second, and this lookup of the pod of a Dataplane, nil if
// there is none.
func NewTokens(reviews typedauthenticationv1.TokenReviewInterface, pod func(model.ProxyID) *metav1.OwnerReference, perSecond int) *Tokens {
	return &Tokens{
		reviews: reviews, pod: pod, ttl: reviewTTL, valid: cache.NewLRUExpireCache(maxReviews), invalid: cache.NewLRUExpireCache(maxReviews),
		issuers: issuers{known: map[string]bool{}}, atOnce: make(chan struct{}, maxReviewsAtOnce),
		gate: newRateGate(perSecond, perSecond), unknownIssuers: newRateGate(unknownIssuerReviews, unknownIssuerReviews),
	}
}

// TrustIssuer has the tokens of the issuer of a token reviewed without delay; a token that cannot be read is ignored.
func (t *Tokens) TrustIssuer(token string) {
	if own, err := parseClaims(token); err == nil {
		t.issuers.add(own.Issuer)
	}
}

// Precheck rejects a stream without a token that could be that of the proxy. It asks nobody.
func (t *Tokens) Precheck(ctx context.Context, claimed model.ProxyID) error {
	_, _, err := t.read(ctx, claimed, nil)
	return err
}

// Identify reviews the token of the stream.
func (t *Tokens) Identify(ctx context.Context, claimed model.ProxyID) error {
	pod := t.pod(claimed)
	token, said, err := t.read(ctx, claimed, pod)
	if err != nil {
		return err
	}
	if pod == nil {
		return unknownProxyError(claimed)
	}
	result, err := t.review(ctx, token, said.Issuer)
	if err != nil {
		return rejectf(causeTokenReviews, codes.Unavailable, "the token of proxy %s cannot be reviewed: %v", claimed, err)
	}
	return checkToken(result, claimed, pod)
}

// read returns the token of a stream, and what it says, unless that is known to be wrong.
func (t *Tokens) read(ctx context.Context, claimed model.ProxyID, pod *metav1.OwnerReference) (string, claims, error) {
	token := bearerToken(ctx)
	if token == "" {
		return "", claims{}, status.Errorf(codes.Unauthenticated,
			"proxy %s presented no token: send \"authorization: Bearer\" with a token of its pod for the audience %s", claimed, Audience)
	}
	said, err := parseClaims(token)
	if err != nil {
		return "", claims{}, invalidToken(claimed, "this is no service account token")
	}
	return token, said, said.check(claimed, pod, time.Now())
}

// bearerToken is the token of a stream.
func bearerToken(ctx context.Context) string {
	for _, value := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		if scheme, token, found := strings.Cut(value, " "); found && strings.EqualFold(scheme, "bearer") {
			return strings.TrimSpace(token)
		}
	}
	return ""
}

func (t *Tokens) review(ctx context.Context, token, issuer string) (authenticationv1.TokenReviewStatus, error) {
	key := sha256.Sum256([]byte(token))
	if known, found := t.cached(key); found {
		return known, nil
	}
	if err := t.waitForReview(ctx, issuer); err != nil {
		return authenticationv1.TokenReviewStatus{}, fmt.Errorf("too many tokens are reviewed: %w", err)
	}
	defer func() { <-t.atOnce }()
	// Another stream of the proxy may have had the token reviewed meanwhile.
	if known, found := t.cached(key); found {
		return known, nil
	}
	answer, err := t.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	if answer.Status.Authenticated {
		t.valid.Add(key, answer.Status, t.ttl)
		t.issuers.add(issuer)
	} else {
		t.invalid.Add(key, answer.Status, t.ttl)
	}
	return answer.Status, nil
}

// waitForReview waits until a token may be reviewed; one of atOnce is then taken.
func (t *Tokens) waitForReview(ctx context.Context, issuer string) error {
	isUnknown := func() bool { return !t.issuers.has(issuer) }
	if isUnknown() {
		if err := t.unknownIssuers.wait(ctx, isUnknown); err != nil {
			return err
		}
	}
	if err := t.gate.wait(ctx, always); err != nil {
		return err
	}
	select {
	case t.atOnce <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Tokens) cached(key [sha256.Size]byte) (authenticationv1.TokenReviewStatus, bool) {
	for _, reviews := range []*cache.LRUExpireCache{t.valid, t.invalid} {
		if known, found := reviews.Get(key); found {
			return known.(authenticationv1.TokenReviewStatus), true
		}
	}
	return authenticationv1.TokenReviewStatus{}, false
}

func invalidToken(claimed model.ProxyID, why string) error {
	return status.Errorf(codes.Unauthenticated, "the token of proxy %s is not valid: %s: mount a token for the audience %s into its pod", claimed, why, Audience)
}

// checkToken returns why a reviewed token is not that of a proxy's pod.
func checkToken(reviewed authenticationv1.TokenReviewStatus, claimed model.ProxyID, pod *metav1.OwnerReference) error {
	if !reviewed.Authenticated || !slices.Contains(reviewed.Audiences, Audience) {
		return invalidToken(claimed, cmp.Or(reviewed.Error, "the audience is not "+Audience))
	}
	if pod == nil {
		return unknownProxyError(claimed)
	}
	account := strings.TrimPrefix(reviewed.User.Username, "system:serviceaccount:")
	namespace, _, found := strings.Cut(account, ":")
	if !found || account == reviewed.User.Username || namespace != claimed.Namespace {
		return deniedToken(reviewed.User.Username, claimed, "a service account in namespace "+claimed.Namespace)
	}
	return checkPod(first(reviewed.User.Extra[extraPodName]), types.UID(first(reviewed.User.Extra[extraPodUID])), claimed, pod)
}

// checkPod returns why a token for a pod is not that of the proxy's pod.
func checkPod(name string, uid types.UID, claimed model.ProxyID, pod *metav1.OwnerReference) error {
	if name == "" || name != pod.Name || uid != pod.UID {
		return deniedToken(fmt.Sprintf("pod %q with UID %q", name, uid), claimed, fmt.Sprintf("pod %q with UID %q", pod.Name, pod.UID))
	}
	return nil
}

func deniedToken(has string, claimed model.ProxyID, needs string) error {
	return status.Errorf(codes.PermissionDenied, "the token is of %s: proxy %s needs one of %s", has, claimed, needs)
}

func first(values authenticationv1.ExtraValue) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
