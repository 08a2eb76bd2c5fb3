package member

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestRefused(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a kind that is not installed": {
			fmt.Errorf("follow it: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, SearchedVersions: []string{"v1"}}),
			"Deployment shop/it in cluster west: the cluster has no kind Deployment in apps/v1: install its CRD in the cluster",
		},
		"a rule that is missing": {
			apierrors.NewForbidden(deployments, "it", errors.New(`User "hub" cannot get resource "deployments" in API group "apps" in the namespace "shop"`)),
			`Deployment shop/it in cluster west: deployments.apps "it" is forbidden: User "hub" cannot get resource "deployments" in API group "apps" in the namespace "shop": ` +
				`add the rule {apiGroups: ["apps"], resources: [deployments], verbs: [get, list, watch, create, update, patch, delete]} to a ClusterRole of the cluster with the label fairlead.dev/aggregate-to-member: "true"`,
		},
		"an admission that forbids": {
			apierrors.NewForbidden(deployments, "it", errors.New("ValidatingAdmissionPolicy 'p' denied request: no")),
			`Deployment shop/it in cluster west: deployments.apps "it" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no`,
		},
		"a cluster that does not serve": {
			apierrors.NewServiceUnavailable("starting"), "waiting until cluster west can be reached: Deployment shop/it: starting",
		},
		"a webhook that cannot be called": {
			apierrors.NewInternalError(errors.New("failed calling webhook")),
			"Deployment shop/it in cluster west: Internal error occurred: failed calling webhook",
		},
		"too large for the store": {
			apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
			"Deployment shop/it in cluster west is too large for the cluster (Internal error occurred: etcdserver: request is too large): split the resource",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !IsUserError(c.err) {
				t.Errorf("it would be tried again at once")
			}
			if got := RefusedReason("west", adoptiontest.Object(t, "Deployment apps/v1"), c.err).Message; got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
