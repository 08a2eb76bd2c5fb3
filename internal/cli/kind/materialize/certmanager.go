package materialize

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// hasCertManager tells whether the API server serves Certificates; it does if that cannot be determined.
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

// failCertificates fails the steps that need cert-manager, which the operator would report only when it tries.
func (p *plan) failCertificates(m, proposed *v1alpha2.Materialize) {
	if proposed != nil {
		m = proposed
	}
	err := objects.WithoutCertManager(m.Spec)
	if err == nil {
		return
	}
	p.Rollout.Obstacle = err.Error()
	for i := range p.Steps {
		step := &p.Steps[i]
		kind := schema.FromAPIVersionAndKind(step.Object.APIVersion, step.Object.Kind)
		if objects.IsCertificate(kind) && step.Action == rollout.ActionKeep && step.State == passage.Pending {
			step.State, step.Reason = passage.Failed, passage.Because(v1alpha2.ReasonFailedDeploy, "cert-manager is not installed")
		}
	}
}
