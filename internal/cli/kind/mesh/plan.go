package mesh

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// plan is what becomes of the consumers of a Mesh.
type plan struct {
	render.PlanReport
	Mesh *forecast.Forecast `json:"mesh,omitempty"`
}

func newPlan(f forecast.Forecast) *plan { return &plan{render.PlanReport{Plan: f.Plan()}, &f} }

func (p *plan) Print(w io.Writer, format render.Format) { printForecast(w, format, *p.Mesh) }

// addZoneFlags adds flags for the zone of the operator, if that is not as recorded in the Mesh.
func (k *Kind) addZoneFlags(flags *pflag.FlagSet) {
	p := &k.zone
	flags.StringVar(&p.Zone, "mesh-zone", "", "zone that the operator serves (default: as recorded by the operator)")
	flags.StringVar(&p.Environment, "mesh-environment", "", "environment of that zone: kubernetes or universal (default: as recorded by the operator)")
	flags.StringVar(&p.SystemNamespace, "mesh-namespace", "", "system namespace of the mesh (default: kuma-system)")
}

func (k *Kind) validateZone() error {
	switch k.zone.Environment {
	case "", desired.Kubernetes, desired.Universal:
		return nil
	}
	return console.UsageErrorf("--mesh-environment %s is neither %s nor %s", k.zone.Environment, desired.Kubernetes, desired.Universal)
}

// planFlags are the changes to plan for.
type planFlags struct {
	mode      string
	consumers []string
	switched  bool
}

func (k *Kind) AddPlanFlags(flags *pflag.FlagSet) {
	m := &k.planned
	flags.StringVar(&m.mode, "mode", "", "plan as if spec.meshServices of the Mesh had this value: Disabled, Everywhere, ReachableBackendRefs or Exclusive")
	flags.StringSliceVar(&m.consumers, "consumer", nil, "plan as if these consumers of the Mesh were switched over, such as shop/Deployment/cart")
	flags.BoolVar(&m.switched, "switched", false, "plan as if all consumers of the Mesh were switched over")
	k.addZoneFlags(flags)
}

// The modes as users may write them.
var modes = map[string]model.Mode{
	"": "", "disabled": model.Disabled, "everywhere": model.Everywhere, "exclusive": model.Exclusive,
	"reachablebackendrefs": model.ReachableBackendRefs, "reachablebackends": model.ReachableBackendRefs,
}

func (k *Kind) ValidatePlanFlags() error {
	m := k.planned
	if _, known := modes[strings.ToLower(m.mode)]; !known {
		return console.UsageErrorf("--mode %s is none of Disabled, Everywhere, ReachableBackendRefs and Exclusive", m.mode)
	}
	if m.switched && len(m.consumers) > 0 {
		return console.UsageErrorf("--switched is all consumers already: leave out --consumer, or --switched")
	}
	return k.validateZone()
}

// Plan tells what a mode of a Mesh, or switching consumers over, changes for the consumers.
func (k *Kind) Plan(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Plan, error) {
	state, err := forecast.Load(ctx, c.Client, r.Key.Name, k.zone)
	if err != nil {
		return nil, r.NotFoundOr(err)
	}
	scenario := forecast.Scenario{Mode: modes[strings.ToLower(k.planned.mode)], Consumers: k.planned.consumers, AllConsumers: k.planned.switched}
	if scenario.Mode == "" {
		scenario.Mode = model.Mode(state.Mesh.Mode())
	}
	f, err := forecast.Compare(state, scenario)
	if unknown := (forecast.UnknownConsumerError{}); errors.As(err, &unknown) {
		return nil, console.UsageErrorf("%v; give --consumer some of %s", err, joinSome(unknown.Known))
	}
	if err != nil {
		return nil, err
	}
	return newPlan(f), nil
}
