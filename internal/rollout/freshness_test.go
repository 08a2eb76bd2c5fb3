package rollout

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestHearsay: what has changed since it was read is looked at again, the first time. Later, that is for writes to find out.
func TestHearsay(t *testing.T) {
	c := newCluster(t)
	a := freshnessCheck{live: &api{cluster: c}}
	before := c.m.DeepCopy()
	c.edit(func(b maker) { b.image("v2") })
	if err := a.check(t.Context(), before); !apierrors.IsConflict(err) {
		t.Errorf("of what has changed it says %v", err)
	}
	if err := a.check(t.Context(), c.m.DeepCopy()); err != nil {
		t.Errorf("of what has not changed it says %v", err)
	}
	if err := a.check(t.Context(), before); err != nil {
		t.Errorf("once it is known, it says %v", err)
	}
	c.m = nil
	another := before.DeepCopy()
	another.UID = "another"
	if err := a.check(t.Context(), another); !apierrors.IsConflict(err) {
		t.Errorf("of what is gone it says %v", err)
	}
}
