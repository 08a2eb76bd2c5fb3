package policy

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// plan is what becomes of every object that a policy selects.
type plan struct {
	render.PlanReport
	Adoption *forecastReport `json:"adoption,omitempty"`
	forecast forecast.Forecast
}

func (p *plan) Print(w io.Writer, format render.Format) { printForecast(w, format, p.forecast) }

func (k *Kind) Plan(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Plan, error) {
	object, err := getPolicy(ctx, c.Client, r)
	if err != nil {
		return nil, err
	}
	return predict(ctx, c, policy.Of(object))
}

// PlanManifest plans with the resources beside the policy as if the hub had them.
func (k *Kind) PlanManifest(ctx context.Context, c *connect.Cluster, r connect.Resource, m manifest.Manifest, manager string) (render.Plan, error) {
	proposed, err := manifest.DryRunApply(ctx, c, r, m, manager)
	if err != nil {
		return nil, err
	}
	object := newPolicy(r.Key)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(proposed.Object, object); err != nil {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	for _, template := range m.Others {
		if err := setDefaultNamespace(c, template); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.Source, err)
		}
	}
	return predict(ctx, c, policy.Of(object), m.Others...)
}

func predict(ctx context.Context, c *connect.Cluster, p *policy.Policy, templates ...*unstructured.Unstructured) (render.Plan, error) {
	predicted, err := forecast.Predict(ctx, c.Client, p, templates...)
	if err != nil {
		return nil, err
	}
	return &plan{render.PlanReport{Plan: predicted.Plan()}, newForecastReport(predicted), predicted}, nil
}

// setDefaultNamespace gives a resource the namespace that it would be applied to.
func setDefaultNamespace(c *connect.Cluster, template *unstructured.Unstructured) error {
	namespaced, err := c.Client.IsObjectNamespaced(template)
	if err != nil {
		return fmt.Errorf("%s %s: %w", template.GetKind(), template.GetName(), err)
	}
	if namespaced && template.GetNamespace() == "" {
		template.SetNamespace(c.Namespace)
	}
	return nil
}
