package rollout

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Standing is where a rollout is, for those who only look on.
type Summary struct {
	// Completed and Requested are the hashes in the status, by today's algorithm.
	Completed, Requested string
	// Promoting holds from the point of no return until the rollout is complete.
	Promoting bool
	// Underway holds when the rollout of the spec, as it is now, has been asked for.
	Underway bool
	// Expired holds when that took too long.
	Expired bool
	// Refused is why the spec, as it is now, cannot be rolled out; nil if it can, or has been.
	Refused error
	// Forced holds when somebody has asked to promote that very rollout, Ignored when forcePromote says so since before.
	Forced, Ignored bool
	// Deadline is when a rollout that is underway will have taken too long. Zero: there is none, or none any more.
	Deadline time.Time
	// Down holds when the active generation has no pod that serves, and no other one does yet.
	Down bool
	// Active is the generation that serves, nil before the first; Next the one that is to.
	Active, Next *Generation
	// NextImage is the image of environmentd in the next generation, or the one that it will have.
	NextImage string
}

// Standing tells where the rollout is.
func (o Observed) Summary(now time.Time) Summary {
	s := Summary{
		Completed: o.completed(), Requested: o.requested(), Promoting: o.promoting(), Underway: o.underway(), Expired: o.expired(now),
		Forced: o.forced(), Ignored: o.forcePromoteIsStale(), Down: o.isDown(),
		Active: o.active(), Next: o.next(), NextImage: o.Materialize.Spec.EnvironmentdImageRef,
	}
	if o.Hash != s.Completed {
		s.Refused = o.validateSpec()
	}
	if s.Promoting || o.matchesSpec(s.Next) {
		s.NextImage = o.imageOf(s.Next)
	}
	if s.Underway && !s.Promoting {
		s.Deadline = o.deadline()
	}
	return s
}

// Proposing is the same environment with another spec: what would be observed if that were the one.
func (o Observed) WithSpec(m *v1alpha2.Materialize) (Observed, error) {
	hash, err := hashAlgorithms.of(m)
	if err != nil {
		return o, fmt.Errorf("hash the spec of Materialize %s/%s: %w", m.Namespace, m.Name, err)
	}
	o.Materialize, o.Hash, o.HashVersion = m, hash, hashAlgorithms.version
	o.Relabelled, o.UnknownHash = nil, nil
	o.relabel(hashAlgorithms)
	if !o.needsLeaderStatus() {
		o.Leader = Answer{}
	}
	return o, nil
}
