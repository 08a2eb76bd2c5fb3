package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

const (
	testID  = "a1b2c3d4e5"
	testUID = "8f5d1e0a-57a5-4c6e-8a3c-2f1d1f8f0b11"
)

// maker makes Materializes.
type maker struct{ *v1alpha2.Materialize }

func makeMaterialize() maker {
	return maker{&v1alpha2.Materialize{
		ObjectMeta: metav1.ObjectMeta{Name: "mz", Namespace: "shop", UID: testUID, Generation: 1, ResourceVersion: "1"},
		Spec: v1alpha2.MaterializeSpec{SharedSpec: v1alpha2.SharedSpec{
			EnvironmentdImageRef: "materialize/environmentd:v1", BackendSecretName: "backend",
			BalancerdReplicas: ptr.To[int32](2), ConsoleReplicas: ptr.To[int32](2),
			RolloutStrategy: v1alpha2.RolloutWaitUntilReady, RolloutRequestTimeout: "24h", AuthenticatorKind: v1alpha2.AuthenticatorNone,
		}},
	}}
}

func (b maker) image(tag string) maker {
	b.Spec.EnvironmentdImageRef = "materialize/environmentd:" + tag
	return b
}

// spec is that of another Materialize.
func (b maker) spec(of maker) maker {
	b.Spec = of.Spec
	return b
}

func (b maker) strategy(s v1alpha2.RolloutStrategy) maker {
	b.Spec.RolloutStrategy = s
	return b
}

func (b maker) timeout(d v1alpha2.Duration) maker {
	b.Spec.RolloutRequestTimeout = d
	return b
}

func (b maker) forcePromote(hash string) maker {
	b.Spec.ForcePromote = hash
	return b
}

// ignoring has a forcePromote from before the rollout.
func (b maker) ignoring(hash string) maker {
	b.Status.IgnoredForcePromote = hash
	return b
}

func (b maker) annotate(key, value string) maker {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, key, value)
	return b
}

// identified has the names of its own.
func (b maker) identified() maker {
	b.Status.ResourceID, b.Status.EnvironmentID = testID, testUID
	return b
}

// serving is one whose rollout of another Materialize was completed as generation g.
func (b maker) serving(t testing.TB, g int64, spec maker) maker {
	b.identified()
	b.Status.ActiveGeneration = g
	b.Status.LastCompletedRolloutHash = hashOf(t, spec)
	b.Status.LastCompletedRolloutEnvironmentdImageRef = spec.Spec.EnvironmentdImageRef
	return b.requested(t, spec, 0).reported(v1alpha2.ReasonApplied)
}

// requested has asked for the rollout of a spec, so many seconds after the epoch.
func (b maker) requested(t testing.TB, spec maker, second int) maker {
	b.Status.RequestedRolloutHash, b.Status.RolloutHashVersion = hashOf(t, spec), hash.Version
	b.Status.RolloutRequestedAt = ptr.To(metav1.NewTime(at(second)))
	return b
}

func (b maker) reported(reason v1alpha2.Reason) maker {
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: v1alpha2.ConditionUpToDate, Status: conditionStatuses[reason], Reason: string(reason), LastTransitionTime: metav1.NewTime(epoch),
	})
	return b
}

// waiting is what the next generation was last seen to wait for.
func (b maker) waiting(message string) maker {
	b.Status.Progress = &v1alpha2.RolloutProgress{Generation: b.Status.ActiveGeneration + 1, Message: message}
	return b
}

// saying is what was told in so many words.
func (b maker) saying(message string) maker {
	meta.FindStatusCondition(b.Status.Conditions, v1alpha2.ConditionUpToDate).Message = message
	return b
}

func hashOf(t testing.TB, b maker) string {
	t.Helper()
	return hash.Of(b.Materialize)
}
