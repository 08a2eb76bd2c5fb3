package migration

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefusals(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	nobody := &url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, test := range map[string]struct {
		err                  error
		forGood, ofTheServer bool
	}{
		"a policy":      {err: apierrors.NewForbidden(deployments, "cart", errors.New("frozen until Monday")), forGood: true},
		"invalid":       {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "cart", nil), forGood: true},
		"a bad request": {err: apierrors.NewBadRequest("no"), forGood: true},
		"no permission, or none that is known yet": {
			err: apierrors.NewForbidden(deployments, "cart", errors.New(`User "fairlead" cannot patch resource "deployments"`)),
		},
		"a webhook that is down":          {err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"nobody listens":                  {err: fmt.Errorf("patch: %w", nobody), ofTheServer: true},
		"the server is busy":              {err: apierrors.NewTooManyRequests("later", 1), ofTheServer: true},
		"the server is leaving":           {err: apierrors.NewServiceUnavailable("bye"), ofTheServer: true},
		"the server is slow":              {err: apierrors.NewTimeoutError("slow", 1), ofTheServer: true},
		"the server does not know us yet": {err: apierrors.NewUnauthorized("who?"), ofTheServer: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusedForGood(test.err); got != test.forGood {
				t.Errorf("refused for good: %t", got)
			}
			if got := ofTheServer(test.err); got != test.ofTheServer {
				t.Errorf("of the server: %t", got)
			}
		})
	}
}
