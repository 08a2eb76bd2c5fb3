package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// zoneFlags is where the operator works, as far as it was told.
type zoneFlags struct {
	desired.ZoneInfo
}

func (p *zoneFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Zone, "mesh-zone", "", "zone of a mesh that the operator serves (default: as it recorded)")
	flags.StringVar(&p.Environment, "mesh-environment", "", "environment of that zone: kubernetes or universal (default: as the operator recorded)")
	flags.StringVar(&p.SystemNamespace, "mesh-namespace", "", "namespace in which the operator keeps what is of the whole mesh (default: kuma-system)")
}

func (p *zoneFlags) isSet() bool { return p.ZoneInfo != desired.ZoneInfo{} }

func (p *zoneFlags) validate() error {
	switch p.Environment {
	case "", desired.Kubernetes, desired.Universal:
		return nil
	}
	return console.UsageErrorf("--mesh-environment %s is neither %s nor %s", p.Environment, desired.Kubernetes, desired.Universal)
}

// meshPlanFlags is what is asked about a Mesh.
type meshPlanFlags struct {
	zoneFlags
	mode      string
	consumers []string
	switched  bool
}

func (m *meshPlanFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.mode, "mode", "", "plan as if meshServices of the Mesh were this: Disabled, Everywhere, ReachableBackendRefs or Exclusive")
	flags.StringSliceVar(&m.consumers, "consumer", nil, "plan as if these consumers of the Mesh were switched over, such as shop/Deployment/cart")
	flags.BoolVar(&m.switched, "switched", false, "plan as if all consumers of the Mesh were switched over")
	m.zoneFlags.addFlags(flags)
}

func (m *meshPlanFlags) isSet() bool {
	return m.mode != "" || len(m.consumers) > 0 || m.switched || m.zoneFlags.isSet()
}

// The modes as users may write them.
var modes = map[string]model.Mode{
	"": "", "disabled": model.Disabled, "everywhere": model.Everywhere, "exclusive": model.Exclusive,
	"reachablebackendrefs": model.ReachableBackendRefs, "reachablebackends": model.ReachableBackendRefs,
}

func (m *meshPlanFlags) validate() error {
	if _, known := modes[strings.ToLower(m.mode)]; !known {
		return console.UsageErrorf("--mode %s is none of Disabled, Everywhere, ReachableBackendRefs and Exclusive", m.mode)
	}
	if m.switched && len(m.consumers) > 0 {
		return console.UsageErrorf("--switched is all consumers already: leave out --consumer, or --switched")
	}
	return m.zoneFlags.validate()
}

// planMesh tells what a mode of a Mesh, or switching consumers over, changes for who calls.
func planMesh(ctx context.Context, c *connect.Cluster, r connect.Resource, m meshPlanFlags) (account, error) {
	world, err := loadMesh(ctx, c, r.Key.Name, m.zoneFlags)
	if apierrors.IsNotFound(err) {
		return account{}, r.NotFound()
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
		return account{}, console.UsageErrorf("%v; give --consumer some of %s", err, joinSome(unknown.Known))
	}
	if err != nil {
		return account{}, err
	}
	return account{Plan: f.Plan(), Mesh: &f}, nil
}

func loadMesh(ctx context.Context, c *connect.Cluster, mesh string, p zoneFlags) (*forecast.MeshState, error) {
	return forecast.Load(ctx, c.Client, mesh, p.ZoneInfo)
}
