package cli

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// hasCertManager tells whether Certificates can be made, as far as anybody can tell.
func hasCertManager(c *connect.Cluster) bool {
	for _, kind := range rollout.OwnedKinds() {
		if !objects.IsCertificate(kind) {
			continue
		}
		if _, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			return false
		}
	}
	return true
}

// failCertificates foresees what the operator cannot make, and would tell of only when it tries.
func (a *account) failCertificates(proposed *v1alpha2.Materialize) {
	if a.Rollout == nil || a.Decision == nil {
		return
	}
	m := a.Rollout.Materialize
	if proposed != nil {
		m = proposed
	}
	err := objects.WithoutCertManager(m.Spec)
	if err == nil {
		return
	}
	a.Decision.Obstacle = err.Error()
	for i := range a.Plan.Steps {
		step := &a.Plan.Steps[i]
		kind := schema.FromAPIVersionAndKind(step.Object.APIVersion, step.Object.Kind)
		if objects.IsCertificate(kind) && step.Action == rollout.ActionKeep && step.State == passage.Pending {
			step.State, step.Reason = passage.Failed, passage.Because(v1alpha2.ReasonFailedDeploy, "cert-manager is not installed")
		}
	}
}
