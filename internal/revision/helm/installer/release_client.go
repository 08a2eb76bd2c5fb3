// Package installer keeps a Helm release as it is wanted: installed, upgraded, repaired where somebody has changed what
// it installed, and removed. Revisions and tags both stand on it.
package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// ReleaseClient reads and writes what belongs to releases.
type ReleaseClient struct {
	objects  *Objects
	live     client.Reader
	releases *release.Manager
	compared comparisons
}

// NewReleaseClient reads metadata from the cache, and whole objects, rarely, from the API server.
func NewReleaseClient(objects *Objects, live client.Reader, releases *release.Manager) *ReleaseClient {
	return &ReleaseClient{
		objects: objects, live: live, releases: releases,
		compared: comparisons{last: map[objectKey]appliedState{}},
	}
}

// Release is one that should be there, and what is there of it.
type Release struct {
	Name, Namespace string
	// Wanted is nil when that cannot be told, for which Err is the reason.
	Wanted *release.Spec
	Err    error
	State  release.State
	// Attempted is when the last attempt began that was not carried through, though it was to install just this.
	Attempted time.Time
	Drift     []Drift
	// Deployments are those that the chart asks for.
	Deployments []client.ObjectKey
}

// Installed means that the latest record tells of exactly what is wanted.
func (r Release) Installed() bool {
	return r.Err == nil && r.Wanted != nil && r.State.Deployed() && r.State.Fingerprint == r.Wanted.Fingerprint()
}

// IsUpToDate means that the release is what is wanted, or was when that could last be told: without a chart to compare it
// with, what has been installed and reported is left alone.
func (r Release) IsUpToDate(reported bool) bool {
	noChart := errors.As(r.Err, new(*UnavailableError)) || errors.As(r.Err, new(*charts.NotFoundError))
	return r.Installed() || reported && r.State.Deployed() && noChart
}

// Observe finds out how a release differs from what is wanted.
func (k *ReleaseClient) Observe(ctx context.Context, wanted release.Spec) (Release, error) {
	r := Release{Name: wanted.Name, Namespace: wanted.Namespace, Wanted: &wanted}
	var err error
	if r.State, err = k.State(ctx, wanted.Namespace, wanted.Name); err != nil {
		return r, err
	}
	objects, err := k.releases.Render(ctx, wanted)
	var unrenderable *release.RenderError
	if errors.As(err, &unrenderable) {
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

// Releases are the states of all releases of a name, in whatever namespaces. What was written a moment ago may not have
// reached the cache.
func (k *ReleaseClient) Releases(ctx context.Context, name string) ([]release.State, error) {
	states, err := k.objects.Releases(ctx, name)
	for i := range states {
		states[i] = k.releases.Latest(states[i])
	}
	return slices.DeleteFunc(states, func(state release.State) bool { return !state.Exists }), err
}

// State is what is recorded of a release. What was written a moment ago may not have reached the cache.
func (k *ReleaseClient) State(ctx context.Context, namespace, name string) (release.State, error) {
	states, err := k.objects.Releases(ctx, name)
	if err != nil {
		return release.State{}, err
	}
	cached := release.State{Name: name, Namespace: namespace}
	for _, state := range states {
		if state.Namespace == namespace {
			cached = state
		}
	}
	return k.releases.Latest(cached), nil
}

// Apply carries out a step that Steps has made.
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

// Uninstall removes a release and what it installed.
func (k *ReleaseClient) Uninstall(ctx context.Context, namespace, name string) error {
	return k.releases.Uninstall(ctx, namespace, name)
}

func nameOf(object *unstructured.Unstructured) string { return objectOf(object).String() }

func objectOf(object *unstructured.Unstructured) passage.Object {
	return passage.Object{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// Related is an object as events refer to it: those about different objects are not taken for one that repeats.
func Related(object passage.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(object.APIVersion)
	u.SetKind(object.Kind)
	u.SetNamespace(object.Namespace)
	u.SetName(object.Name)
	return u
}
