package release

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Install installs or upgrades a release: a missing one, one of another spec, or one that a crash has interrupted. It writes
// nothing when the same spec is recorded as deployed; Restore is for objects that were changed since. No request is sent after
// the end of the context.
func (m *Manager) Install(ctx context.Context, spec Spec) error {
	done, err := m.locks.lock(ctx, spec.key())
	if err != nil {
		return err
	}
	defer done()
	objects, err := m.Render(ctx, spec)
	if err != nil {
		return err
	}
	m.recent.remove(spec.key())
	state, err := m.install(ctx, spec, objects)
	if err != nil {
		return fmt.Errorf("install release %s: %w", spec.key(), err)
	}
	m.recent.add(state, time.Now())
	return nil
}

func (m *Manager) install(ctx context.Context, spec Spec, objects []*unstructured.Unstructured) (State, error) {
	s, err := m.session(ctx, spec.Namespace)
	if err != nil {
		return State{}, err
	}
	past, err := s.history(spec.Name)
	if err != nil {
		return State{}, err
	}
	if state, ok := past.installed(spec.Fingerprint()); ok {
		return state, nil
	}
	if err := s.loadObjects(past); err != nil {
		return State{}, err
	}
	if !spec.TakeOwnership {
		if err := m.checkOwnership(ctx, objects, past.deployed().objects()); err != nil {
			return State{}, err
		}
	}
	installOrUpgrade := s.helmInstall
	if len(past) > 0 {
		installOrUpgrade = s.helmUpgrade
		if past, err = s.prepareRetry(past); err != nil {
			return State{}, err
		}
	}
	made, err := installOrUpgrade(spec, objects, past.objects())
	if slices.ContainsFunc(objects, isCRD) {
		m.cluster.invalidate()
	}
	if err != nil {
		return State{}, err
	}
	return stateOf(made), nil
}

// checkOwnership fails if an object belongs to another owner. An object without an owner that this release has deployed has
// only lost its annotations.
func (m *Manager) checkOwnership(ctx context.Context, objects, deployed []*unstructured.Unstructured) error {
	ours := map[identity]bool{}
	for _, object := range deployed {
		ours[identify(object)] = true
	}
	var conflicts []Conflict
	for _, object := range objects {
		live, err := get(ctx, m, object, &metav1.PartialObjectMetadata{})
		if err != nil {
			return err
		}
		if live == nil || isOwnedBy(live, object) || holder(live) == noRelease && ours[identify(object)] {
			continue
		}
		conflicts = append(conflicts, Conflict{describe(object), holder(live)})
	}
	if len(conflicts) > 0 {
		return &OwnedByOthersError{conflicts}
	}
	return nil
}
