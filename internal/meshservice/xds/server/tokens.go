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
)

// Tokens authenticates by a service account token that is bound to the proxy's pod and issued for Audience.
type Tokens struct {
	reviews typedauthenticationv1.TokenReviewInterface
	pod     func(model.ProxyID) *metav1.OwnerReference
	ttl     time.Duration

	// cache has the status of reviews by the hash of the token.
	cache *cache.LRUExpireCache
}

// NewTokens returns an Identifier with these TokenReviews and this lookup of the pod of a Dataplane, nil if there is none.
func NewTokens(reviews typedauthenticationv1.TokenReviewInterface, pod func(model.ProxyID) *metav1.OwnerReference) *Tokens {
	return &Tokens{reviews: reviews, pod: pod, ttl: reviewTTL, cache: cache.NewLRUExpireCache(maxReviews)}
}

// Identify reviews the token of the stream.
func (t *Tokens) Identify(ctx context.Context, claimed model.ProxyID) error {
	token := bearerToken(ctx)
	if token == "" {
		return status.Errorf(codes.Unauthenticated,
			"proxy %s presented no token: send \"authorization: Bearer\" with a token of its pod for the audience %s", claimed, Audience)
	}
	result, err := t.review(ctx, token)
	if err != nil {
		return status.Errorf(codes.Unavailable, "the token of proxy %s cannot be reviewed: %v", claimed, err)
	}
	return checkToken(result, claimed, t.pod(claimed))
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

func (t *Tokens) review(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
	key := sha256.Sum256([]byte(token))
	if known, found := t.cache.Get(key); found {
		return known.(authenticationv1.TokenReviewStatus), nil
	}
	answer, err := t.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	t.cache.Add(key, answer.Status, t.ttl)
	return answer.Status, nil
}

// checkToken returns why a reviewed token is not that of a proxy's pod.
func checkToken(reviewed authenticationv1.TokenReviewStatus, claimed model.ProxyID, pod *metav1.OwnerReference) error {
	if !reviewed.Authenticated || !slices.Contains(reviewed.Audiences, Audience) {
		why := cmp.Or(reviewed.Error, "the audience is not "+Audience)
		return status.Errorf(codes.Unauthenticated, "the token of proxy %s is not valid: %s: mount a token for the audience %s into its pod", claimed, why, Audience)
	}
	if pod == nil {
		return unknownProxyError(claimed)
	}
	denied := func(has, needs string) error {
		return status.Errorf(codes.PermissionDenied, "the token is of %s: proxy %s needs one of %s", has, claimed, needs)
	}
	account := strings.TrimPrefix(reviewed.User.Username, "system:serviceaccount:")
	namespace, _, found := strings.Cut(account, ":")
	if !found || account == reviewed.User.Username || namespace != claimed.Namespace {
		return denied(reviewed.User.Username, "a service account in namespace "+claimed.Namespace)
	}
	name, uid := first(reviewed.User.Extra[extraPodName]), first(reviewed.User.Extra[extraPodUID])
	if name == "" || name != pod.Name || types.UID(uid) != pod.UID {
		return denied(fmt.Sprintf("pod %q with UID %q", name, uid), fmt.Sprintf("pod %q with UID %q", pod.Name, pod.UID))
	}
	return nil
}

func first(values authenticationv1.ExtraValue) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
