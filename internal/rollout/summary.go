package rollout

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Summary is the state of a rollout, for commands.
type Summary struct {
	// Completed and Requested are the hashes in the status, by the current algorithm.
	Completed, Requested string
	// Promoting holds from the commit of the promotion until the rollout is complete.
	Promoting bool
	// Underway holds when the rollout of the current spec has been requested.
	Underway bool
	// Expired holds when that rollout timed out.
	Expired bool
	// Refused is why the current spec cannot be rolled out; nil if it can, or has been.
	Refused error
	// Forced holds when spec.forcePromote asks to promote that rollout, Ignored when it is older than the request.
	Forced, Ignored bool
	// Deadline is when the rollout that is underway times out. Zero: there is none, or it cannot time out any more.
	Deadline time.Time
	// Down holds when the active generation has no ready pod, and no other generation serves.
	Down bool
	// Active is the active generation, nil before the first; Next is the one after it.
	Active, Next *Generation
	// NextImage is the image of environmentd in the next generation.
	NextImage string
}

// Summary of the rollout at a time.
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

// WithSpec is the same environment with another spec.
func (o Observed) WithSpec(m *v1alpha2.Materialize) (Observed, error) {
	hash, err := currentHasher.of(m)
	if err != nil {
		return o, fmt.Errorf("hash the spec of Materialize %s/%s: %w", m.Namespace, m.Name, err)
	}
	o.Materialize, o.Hash, o.HashVersion = m, hash, currentHasher.version
	o.Rehashed, o.UnknownHash = nil, nil
	o.rehash(currentHasher)
	if !o.needsLeaderStatus() {
		o.Leader = Answer{}
	}
	return o, nil
}
