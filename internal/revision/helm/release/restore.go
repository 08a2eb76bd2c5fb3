package release

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
)

// Restore applies an object of a release again if it differs from what Render returned, and tells whether it changed.
// An object of a release that is no longer installed as the spec says is not restored: no later uninstall would delete it.
func (m *Manager) Restore(ctx context.Context, spec Spec, desired *unstructured.Unstructured) (changed bool, err error) {
	done, err := m.lock(ctx, spec.key())
	if err != nil {
		return false, err
	}
	defer done()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		changed, err = m.restore(ctx, spec, desired)
		return err
	})
	return changed, err
}

func (m *Manager) restore(ctx context.Context, spec Spec, desired *unstructured.Unstructured) (bool, error) {
	count(opCompare)
	live, err := m.Live(ctx, desired)
	if err != nil {
		return false, err
	}
	var field string
	if live != nil {
		if live.GetDeletionTimestamp() != nil {
			return false, nil // the object is created again after its deletion
		}
		if !isOwnedBy(live, desired) && !isInherited(live, desired) && holder(live) != noRelease && !spec.isMovedRelease(live) {
			return false, &OwnedByOthersError{[]Conflict{{describe(desired), holder(live)}}}
		}
		var differs bool
		if field, differs = Differs(desired, live); !differs {
			return false, nil
		}
	}
	// The caller may have seen the drift before another reconcile uninstalled the release.
	_, past, err := m.session(ctx, spec.key())
	if err != nil {
		return false, err
	}
	if _, installed := past.installed(spec.Fingerprint()); !installed {
		return false, nil
	}
	count(opRestore)
	applied, err := m.apply(ctx, withLiveFields(desired, live))
	if err != nil {
		return false, err
	}
	if live != nil && applied.GetResourceVersion() == live.GetResourceVersion() {
		m.log.V(1).Info("the API server reports no difference", "object", describe(desired), "field", field)
		return false, nil
	}
	return true, nil
}

// isMovedRelease tells whether an object belongs to the same release in another namespace. While a release moves, it exists in
// two namespaces, and either may have annotated the object last.
func (s Spec) isMovedRelease(live metav1.Object) bool {
	return s.TakeOwnership && Of(live).Name == s.Name
}
