package rollout

import (
	"context"
	"errors"
	"fmt"
)

// leader is what controllers ask.
type leader struct{ *api }

func (l leader) daemon(at Address) (*daemon, error) {
	set := l.set("mz" + at.ResourceID + fmt.Sprint("-environmentd-", at.Generation))
	if set == nil || l.daemons[set.GetUID()] == nil {
		return nil, errors.New("environmentd does not answer: connection refused")
	}
	return l.daemons[set.GetUID()], nil
}

func (l leader) Status(_ context.Context, at Address) (LeaderStatus, error) {
	d, err := l.daemon(at)
	if err != nil {
		return "", err
	}
	return d.status, nil
}

func (l leader) Promote(_ context.Context, at Address) error {
	if !l.alive() {
		return errKilled
	}
	d, err := l.daemon(at)
	if err != nil {
		return err
	}
	l.checkPromote(d)
	l.tell("post     promote generation %d", at.Generation)
	if d.status == Initializing {
		return refusal{"it is not ready"}
	}
	if d.status == ReadyToPromote {
		d.status = Promoting
		l.later(takesOver, "", func() {
			if now, err := l.daemon(at); err != nil || now != d {
				return
			}
			d.status = IsLeader
			l.tell("         generation %d is the leader", at.Generation)
		})
	}
	return nil
}

func (l leader) SkipCatchup(_ context.Context, at Address) error {
	if !l.alive() {
		return errKilled
	}
	d, err := l.daemon(at)
	if err != nil {
		return err
	}
	l.tell("post     skip-catchup of generation %d", at.Generation)
	if d.status != Initializing {
		return refusal{"there is nothing to skip"}
	}
	d.status = ReadyToPromote
	return nil
}
