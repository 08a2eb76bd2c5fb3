package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/hash"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// seen is an environment whose second generation has its pods.
func seen(t *testing.T, strategy v1alpha2.RolloutStrategy, reason v1alpha2.Reason, now time.Time) Observed {
	t.Helper()
	m := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mz", UID: "u"}}
	m.Spec.EnvironmentdImageRef, m.Spec.BackendSecretName = "materialize/environmentd:v2", "backend"
	m.Spec.RolloutStrategy, m.Spec.RolloutRequestTimeout = strategy, "1h"
	h := hash.Of(m)
	m.Status = v1alpha2.MaterializeStatus{SharedStatus: v1alpha2.SharedStatus{
		ResourceID: "a1b2c3d4e5", EnvironmentID: "8f5d1e0a-57a5-4c6e-8a3c-2f1d1f8f0b11", ActiveGeneration: 1,
		LastCompletedRolloutHash: "another", RequestedRolloutHash: h, RolloutHashVersion: hash.Version,
		RolloutRequestedAt: ptr.To(metav1.NewTime(now)),
	}}
	setCondition(&m.Status, m, assessment{reason: passage.Because(reason, "of before")}, now)
	set := &appsv1.StatefulSet{}
	set.Status = appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1}
	next := &Generation{Number: 2, Record: objects.NewRecord(m, h, 2), Hash: h, StatefulSet: set}
	o := Observed{Materialize: m, Hash: h, HashVersion: hash.Version, Generations: map[int64]*Generation{2: next}}
	for _, object := range decide(o, now).desired {
		if objects.GenerationOf(object) == next.Number {
			next.Objects = append(next.Objects, object)
		}
	}
	return o
}

func TestStanding(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	type standing struct {
		Promoting, Underway, Expired bool
		Left                         time.Duration
		Image                        string
	}
	cases := map[string]struct {
		phase v1alpha2.Reason
		after time.Duration
		image string
		want  standing
	}{
		"underway":         {v1alpha2.ReasonApplying, time.Minute, "", standing{Underway: true, Left: 59 * time.Minute, Image: "materialize/environmentd:v2"}},
		"took too long":    {v1alpha2.ReasonApplying, time.Hour, "", standing{Underway: true, Expired: true, Image: "materialize/environmentd:v2"}},
		"promoting":        {v1alpha2.ReasonPromoting, time.Minute, "", standing{Promoting: true, Underway: true, Image: "materialize/environmentd:v2"}},
		"another proposed": {v1alpha2.ReasonApplying, time.Minute, "v3", standing{Image: "v3"}},
		"another proposed while promoting": {
			v1alpha2.ReasonPromoting, time.Minute, "v3", standing{Promoting: true, Image: "materialize/environmentd:v2"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := seen(t, v1alpha2.RolloutWaitUntilReady, c.phase, now)
			if c.image != "" {
				proposed := o.Materialize.DeepCopy()
				proposed.Spec.EnvironmentdImageRef = c.image
				o = o.WithSpec(proposed)
			}
			at := now.Add(c.after)
			got := standing{Promoting: o.Promoting(), Underway: o.Underway(), Expired: o.Expired(at), Image: o.NextImage()}
			if deadline := o.Deadline(); !deadline.IsZero() {
				got.Left = deadline.Sub(at)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
