package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
)

// leader is what controllers ask.
type leader struct{ *api }

func (l leader) daemon(at environmentd.Address) (*daemon, error) {
	set := l.set("mz" + at.ResourceID + fmt.Sprint("-environmentd-", at.Generation))
	if set == nil || l.daemons[set.GetUID()] == nil {
		return nil, errors.New("environmentd does not answer: connection refused")
	}
	return l.daemons[set.GetUID()], nil
}

func (l leader) Status(_ context.Context, at environmentd.Address) (v1alpha2.LeaderStatus, error) {
	d, err := l.daemon(at)
	if err != nil {
		return "", err
	}
	return d.status, nil
}

func (l leader) Promote(_ context.Context, at environmentd.Address) error {
	if !l.alive() {
		return errKilled
	}
	d, err := l.daemon(at)
	if err != nil {
		return err
	}
	l.checkPromote(d)
	l.tell("post     promote generation %d", at.Generation)
	if d.status == v1alpha2.LeaderInitializing {
		return environmentd.Refusal{Message: "it is not ready"}
	}
	if d.status == v1alpha2.LeaderReadyToPromote {
		d.status = v1alpha2.LeaderPromoting
		l.later(takesOver, "", func() {
			if now, err := l.daemon(at); err != nil || now != d {
				return
			}
			d.status = v1alpha2.LeaderIsLeader
			l.tell("         generation %d is the leader", at.Generation)
		})
	}
	return nil
}

func (l leader) SkipCatchup(_ context.Context, at environmentd.Address) error {
	if !l.alive() {
		return errKilled
	}
	d, err := l.daemon(at)
	if err != nil {
		return err
	}
	l.tell("post     skip-catchup of generation %d", at.Generation)
	if d.status != v1alpha2.LeaderInitializing {
		return environmentd.Refusal{Message: "there is nothing to skip"}
	}
	d.status = v1alpha2.LeaderReadyToPromote
	return nil
}
