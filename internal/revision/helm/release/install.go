package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Install installs or upgrades a release: a missing one, one of another spec, or one that a crash has interrupted. It writes
// nothing when the same spec is recorded as deployed; Restore is for objects that were changed since. No request is sent after
// the end of the context.
func (m *Manager) Install(ctx context.Context, spec Spec) error {
	done, err := m.lock(ctx, spec.key())
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
	s, past, err := m.session(ctx, spec.key())
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
	if past, err = s.prepareRetry(past); err != nil {
		return State{}, err
	}
	made, err := s.attempt(spec, objects, past)
	if slices.ContainsFunc(objects, isCRD) {
		m.forgetCapabilities()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return State{}, context.Cause(ctx)
	case err != nil:
		return State{}, err
	}
	return stateOf(made), nil
}

// attempt records an install or upgrade, applies the objects, deletes objects that only earlier attempts had, and records the
// outcome. The record lists the objects before any of them exists.
func (s *session) attempt(spec Spec, objects []*unstructured.Unstructured, past history) (*helm.Release, error) {
	made, err := newRecord(spec, objects)
	if err != nil {
		return nil, err
	}
	op, pending := opInstall, common.StatusPendingInstall
	var replaced *helm.Release
	if len(past) > 0 {
		op, pending, replaced = opUpgrade, common.StatusPendingUpgrade, past.current()
		made.Version, made.Info.FirstDeployed = past[len(past)-1].Version+1, replaced.Info.FirstDeployed
	}
	count(op)
	made.SetStatus(pending, "Objects are being applied")
	if err := s.store.Create(made); err != nil {
		return nil, err
	}
	if err := s.replaceObjects(past.objects(), objects); err != nil {
		s.log.V(1).Info("cannot apply the objects of a release", "release", spec.key().String(), "operation", op, "error", err.Error())
		made.SetStatus(common.StatusFailed, fmt.Sprintf("Objects could not be applied: %v", err))
		_ = s.store.Update(made) // the error about the object is the one to return
		return nil, err
	}
	var notSuperseded error
	if replaced != nil {
		replaced.Info.Status = common.StatusSuperseded
		notSuperseded = s.store.Update(replaced)
	}
	made.SetStatus(common.StatusDeployed, "Objects are applied")
	return made, errors.Join(notSuperseded, s.store.Update(made))
}

// replaceObjects applies the desired objects in order, and then deletes other known objects of the release.
func (s *session) replaceObjects(known, desired []*unstructured.Unstructured) error {
	wanted := map[identity]bool{}
	for _, object := range desired {
		wanted[identify(object)] = true
		if err := s.applyObject(s.ctx, object); err != nil {
			return err
		}
	}
	for _, object := range removalOrder(known) {
		if wanted[identify(object)] {
			continue
		}
		if err := s.remove(s.ctx, object); err != nil {
			return err
		}
	}
	return nil
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
		if live == nil || isOwnedBy(live, object) || isInherited(live, object) || holder(live) == noRelease && ours[identify(object)] {
			continue
		}
		conflicts = append(conflicts, Conflict{describe(object), holder(live)})
	}
	if len(conflicts) > 0 {
		return &OwnedByOthersError{conflicts}
	}
	return nil
}
