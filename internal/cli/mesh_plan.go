package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// place is where the operator works, as far as it was told.
type place struct {
	desired.ZoneInfo
}

func (p *place) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Zone, "mesh-zone", "", "zone of a mesh that the operator serves (default: as it recorded)")
	flags.StringVar(&p.Environment, "mesh-environment", "", "environment of that zone: kubernetes or universal (default: as the operator recorded)")
	flags.StringVar(&p.SystemNamespace, "mesh-namespace", "", "namespace in which the operator keeps what is of the whole mesh (default: kuma-system)")
}

func (p *place) given() bool { return p.ZoneInfo != desired.ZoneInfo{} }

func (p *place) validate() error {
	switch p.Environment {
	case "", desired.Kubernetes, desired.Universal:
		return nil
	}
	return usageErrorf("--mesh-environment %s is neither %s nor %s", p.Environment, desired.Kubernetes, desired.Universal)
}

// meshQuestion is what is asked about a Mesh.
type meshQuestion struct {
	place
	mode      string
	consumers []string
	switched  bool
}

func (m *meshQuestion) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.mode, "mode", "", "plan as if meshServices of the Mesh were this: Disabled, Everywhere, ReachableBackendRefs or Exclusive")
	flags.StringSliceVar(&m.consumers, "consumer", nil, "plan as if these consumers of the Mesh were switched over, such as shop/Deployment/cart")
	flags.BoolVar(&m.switched, "switched", false, "plan as if all consumers of the Mesh were switched over")
	m.place.addFlags(flags)
}

func (m *meshQuestion) given() bool {
	return m.mode != "" || len(m.consumers) > 0 || m.switched || m.place.given()
}

// The modes as users may write them.
var modes = map[string]model.Mode{
	"": "", "disabled": model.Disabled, "everywhere": model.Everywhere, "exclusive": model.Exclusive,
	"reachablebackendrefs": model.ReachableBackendRefs, "reachablebackends": model.ReachableBackendRefs,
}

func (m *meshQuestion) validate() error {
	if _, known := modes[strings.ToLower(m.mode)]; !known {
		return usageErrorf("--mode %s is none of Disabled, Everywhere, ReachableBackendRefs and Exclusive", m.mode)
	}
	if m.switched && len(m.consumers) > 0 {
		return usageErrorf("--switched is all consumers already: leave out --consumer, or --switched")
	}
	return m.place.validate()
}

// planMesh tells what a mode of a Mesh, or switching consumers over, changes for who calls.
func (c *cluster) planMesh(ctx context.Context, r resource, m meshQuestion) (account, error) {
	world, err := c.meshWorld(ctx, r.key.Name, m.place)
	if apierrors.IsNotFound(err) {
		return account{}, r.missing()
	}
	if err != nil {
		return account{}, err
	}
	q := forecast.Scenario{Mode: modes[strings.ToLower(m.mode)], Consumers: m.consumers, AllConsumers: m.switched}
	if q.Mode == "" {
		q.Mode = model.Mode(world.Mesh.Mode())
	}
	f, err := forecast.Compare(world, q)
	if unknown := (forecast.UnknownConsumerError{}); errors.As(err, &unknown) {
		return account{}, usageErrorf("%v; give --consumer some of %s", err, someOf(unknown.Known))
	}
	if err != nil {
		return account{}, err
	}
	return account{Plan: f.Plan(), Mesh: &f}, nil
}

func (c *cluster) meshWorld(ctx context.Context, mesh string, p place) (*forecast.MeshState, error) {
	return forecast.Load(ctx, c.client, mesh, p.ZoneInfo)
}
