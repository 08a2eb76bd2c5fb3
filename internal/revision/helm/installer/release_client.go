// Package installer reconciles a Helm release: it installs, upgrades, restores changed objects and uninstalls. The stages of
// revisions and of tags share its Reconcile.
package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// ReleaseClient observes, installs, restores and uninstalls releases.
type ReleaseClient struct {
	objects  *Objects
	releases *release.Manager
	// compared has the appliedState of each object when it was last found as desired.
	compared sync.Map
}

// NewReleaseClient reads metadata from the cache, and whole objects, rarely, from the API server.
func NewReleaseClient(objects *Objects, releases *release.Manager) *ReleaseClient {
	return &ReleaseClient{objects: objects, releases: releases}
}

// Release is a wanted release and its actual state.
type Release struct {
	Name, Namespace string
	// Chart is what the release is made from; its digest is empty when the chart is not loaded, or refused.
	Chart v1.ChartDigest
	// Wanted is nil when it cannot be determined; Err is the reason.
	Wanted *release.Spec
	Err    error
	State  release.State
	// Attempted is when the last failed attempt to install this very spec began.
	Attempted time.Time
	Drift     []Drift
	// Deployments are those that the chart asks for.
	Deployments []client.ObjectKey
}

// Installed tells whether the latest record is of the wanted spec.
func (r Release) Installed() bool {
	return r.Err == nil && r.Wanted != nil && r.State.Deployed() && r.State.Fingerprint == r.Wanted.Fingerprint()
}

// IsUpToDate tells whether the release is as wanted. Without a chart to compare with, a release that was installed and
// reported counts as up to date, and so does one of the wanted version whose chart was changed since.
func (r Release) IsUpToDate(reported bool) bool {
	if r.chartChanged() {
		return r.State.Deployed() && r.State.ChartVersion == r.Chart.Version
	}
	noChart := errors.As(r.Err, new(*UnavailableError)) || errors.As(r.Err, new(*charts.NotFoundError))
	return r.Installed() || reported && r.State.Deployed() && noChart
}

func (r Release) chartChanged() bool { return errors.As(r.Err, new(*ChangedChartError)) }

// Observe compares a release with the wanted spec.
func (k *ReleaseClient) Observe(ctx context.Context, wanted release.Spec) (Release, error) {
	r := Release{Name: wanted.Name, Namespace: wanted.Namespace, Wanted: &wanted}
	all, err := k.Releases(ctx, wanted.Name)
	if err != nil {
		return r, err
	}
	wanted.Replaces = map[string]types.UID{}
	for _, state := range all {
		if state.Namespace == wanted.Namespace {
			continue
		}
		uid, err := k.objects.namespaceUID(ctx, state.Namespace)
		if err != nil {
			return r, err
		}
		if uid != "" {
			wanted.Replaces[state.Namespace] = uid
		}
	}
	if r.State, err = k.State(ctx, wanted.Namespace, wanted.Name); err != nil {
		return r, err
	}
	objects, err := k.releases.Render(ctx, wanted)
	if errors.As(err, new(*release.RenderError)) {
		r.Err = err
		return r, nil
	}
	if err != nil {
		return r, err
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			r.Deployments = append(r.Deployments, client.ObjectKeyFromObject(object))
		}
	}
	switch {
	case r.Installed():
		r.Drift, err = k.drift(ctx, objects)
	case r.hasFailed():
		r.Attempted, err = k.objects.lastAttempt(ctx, r.Namespace, r.Name)
	}
	return r, err
}

// Releases are the states of all releases of a name, in any namespace, our own latest writes included.
func (k *ReleaseClient) Releases(ctx context.Context, name string) ([]release.State, error) {
	states, err := k.objects.Releases(ctx, name)
	for i := range states {
		states[i] = k.releases.Latest(states[i])
	}
	return slices.DeleteFunc(states, func(state release.State) bool { return !state.Exists }), err
}

// State is the recorded state of a release, our own latest writes included.
func (k *ReleaseClient) State(ctx context.Context, namespace, name string) (release.State, error) {
	cached, err := k.objects.state(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return release.State{}, err
	}
	return k.releases.Latest(cached), nil
}

// Apply applies a step of Steps.
func (k *ReleaseClient) Apply(ctx context.Context, r Release, step passage.Step) error {
	switch step.Action {
	case ActionInstall, ActionUpgrade:
		return k.releases.Install(ctx, *r.Wanted)
	case ActionRestore:
		for _, drift := range r.Drift {
			if objectOf(drift.Desired) != step.Object {
				continue
			}
			if _, err := k.releases.Restore(ctx, *r.Wanted, drift.Desired); err != nil {
				return err
			}
		}
		return nil
	case ActionUninstall:
		return k.Uninstall(ctx, r.Namespace, r.Name)
	}
	return fmt.Errorf("a release knows no step %q", step.Action)
}

// Uninstall removes a release and its objects.
func (k *ReleaseClient) Uninstall(ctx context.Context, namespace, name string) error {
	return k.releases.Uninstall(ctx, namespace, name)
}

func objectOf(object *unstructured.Unstructured) passage.Object {
	return passage.Object{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// related is an object as events refer to it: events about different objects are not aggregated.
func related(object passage.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(object.APIVersion)
	u.SetKind(object.Kind)
	u.SetNamespace(object.Namespace)
	u.SetName(object.Name)
	return u
}
