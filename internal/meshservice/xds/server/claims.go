package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// clockSkew is by how much the clocks of the API server and of the operator may differ.
const clockSkew = 5 * time.Minute

// signatureAlgorithms are those of service account tokens. The API server verifies the signature.
var signatureAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512}

// claims are what a token says of itself. Nobody has verified it.
type claims struct {
	jwt.Claims
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Pod       struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

func parseClaims(token string) (claims, error) {
	var c claims
	parsed, err := jwt.ParseSigned(token, signatureAlgorithms)
	if err == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&c)
	}
	return c, err
}

// check returns why the API server would reject a token, or why it is not that of the proxy's pod. Without a pod, only what does
// not depend on it is checked.
func (c claims) check(claimed model.ProxyID, pod *metav1.OwnerReference, now time.Time) error {
	switch err := c.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{Audience}, Time: now}, clockSkew); {
	case errors.Is(err, jwt.ErrInvalidAudience):
		return invalidToken(claimed, "the audience is not "+Audience)
	case errors.Is(err, jwt.ErrExpired):
		return invalidToken(claimed, "token has expired at "+c.Expiry.Time().UTC().Format(time.RFC3339))
	case err != nil:
		return invalidToken(claimed, err.Error())
	case c.Expiry == nil, c.Issuer == "":
		return invalidToken(claimed, "the token has no expiry or no issuer")
	}
	if c.Kubernetes.Namespace != claimed.Namespace {
		return deniedToken(fmt.Sprintf("namespace %q", c.Kubernetes.Namespace), claimed, "a service account in namespace "+claimed.Namespace)
	}
	if pod == nil {
		return nil
	}
	if its := c.Kubernetes.Pod; its.Name != pod.Name || its.UID != pod.UID {
		// The UID of the pod is not told to a client that nobody has identified: it could make a token of it.
		return deniedToken(fmt.Sprintf("pod %q with UID %q", its.Name, its.UID), claimed, "its own pod")
	}
	return nil
}

// issuers are those whose tokens the API server has confirmed. Tokens of others are reviewed too, since a cluster may get
// another issuer, but one after the other.
type issuers struct {
	mu    sync.RWMutex
	known map[string]bool
}

// maxIssuers bounds the known issuers: an API server has few.
const maxIssuers = 16

func (i *issuers) has(issuer string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.known[issuer]
}

func (i *issuers) add(issuer string) {
	if i.has(issuer) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) < maxIssuers {
		i.known[issuer] = true
	}
}
