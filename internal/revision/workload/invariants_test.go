package workload

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// asks counts how often people have asked for all workloads to be on a revision: as often, and not more, may each of them
// be restarted for it.
func (c *cluster) asks(revision string) { c.asked[revision]++ }

func (c *cluster) retry() {
	// Whoever asks for it does not ask to wait.
	clear(c.settled)
	c.asks(c.istio.Status.ActiveRevisionName)
	c.change(func(i *v1.Istio) {
		if i.Annotations == nil {
			i.Annotations = map[string]string{}
		}
		i.Annotations[fairlead.AnnotationRetry] = c.now.Format(time.RFC3339Nano)
	})
}

// promises has every write of a cluster checked, in the plainest way there is.
func promises(c *cluster) {
	c.onMove = func(a *app, now *appsv1.Deployment, mark *Mark) {
		broken := func(format string, args ...any) {
			c.t.Errorf("%s: %s: "+format, append([]any{c.now.Sub(epoch), a.key()}, args...)...)
		}
		migration := c.istio.Spec.UpdateStrategy.WorkloadMigration
		size := int(*migration.Batched.BatchSize)
		if n := c.underway(); n > size && !a.disturbed {
			broken("%d are restarting, in batches of %d", n, size)
		}
		if n := c.restarts[a.key()+" to "+mark.Target]; n > c.asked[mark.Target] {
			broken("is restarted %d times for %s, asked for %d times", n, mark.Target, c.asked[mark.Target])
		}
		switch {
		case a.Annotations[v1.AnnotationSkipMigration] == "true":
			broken("is to be skipped")
		case a.Spec.Paused:
			broken("is paused")
		case c.istio.Annotations[fairlead.AnnotationPaused] == "true":
			broken("starts while all is paused")
		case migration.Strategy == "":
			broken("starts while migrations are off")
		case migration.Batched.MaxVersion != nil && mark.Target == "default-v1-27-0":
			broken("starts above the bound")
		case mark.Target != c.istio.Status.ActiveRevisionName:
			broken("starts for %s", mark.Target)
		}
		if mark.Batch == 0 {
			return
		}
		switch name := usage.Choose(c.namespaces[a.Namespace].Labels, now.Spec.Template.Labels).Name; name {
		case mark.Target, "prod", "default":
		default:
			broken("is restarted though it chooses %q", name)
		}
		delay, _ := migration.Batched.DelayBetweenBatches.Parse()
		if settled, found := c.settled[mark.Run]; found && c.underway() == 1 && !a.disturbed && c.now.Before(settled.Add(delay)) {
			broken("starts %s too early after the last batch", settled.Add(delay).Sub(c.now))
		}
	}
	c.onStatus = func(s *v1.WorkloadMigrationStatus) {
		if s == nil {
			return
		}
		switch {
		case s.MigratedWorkloads+s.FailedWorkloads > s.TotalWorkloads, len(s.Failures) > v1.MaxReportedFailures,
			s.State == v1.WorkloadMigrationStateCompleted && (s.MigratedWorkloads != s.TotalWorkloads || len(s.Failures) > 0),
			s.State == v1.WorkloadMigrationStateFailed && len(s.Failures) == 0,
			s.Batched != nil && s.Batched.CurrentBatch > s.Batched.TotalBatches,
			(s.State == v1.WorkloadMigrationStateInProgress || s.State == v1.WorkloadMigrationStateIdle) != (s.CompletionTime == nil):
			c.t.Errorf("%s: a status that makes no sense: %+v %+v", c.now.Sub(epoch), s, s.Batched)
		}
	}
}

func failedAs(a *app, reason v1.Reason) bool {
	mark := markOn(a.Deployment)
	return mark != nil && !mark.Failed.IsZero() && v1.Reason(mark.Reason.Code) == reason
}

// judge looks at how it all ended.
func (d dice) judge(c *cluster, failFast bool) {
	goal := c.istio.Status.ActiveRevisionName
	status := c.istio.Status.WorkloadMigration
	if status == nil || status.TargetRevision != goal || status.State == v1.WorkloadMigrationStateInProgress {
		c.t.Errorf("in the end, the status is %+v", status)
		return
	}
	stopped := failFast && status.State == v1.WorkloadMigrationStateFailed
	for _, a := range c.sorted() {
		if a.desired() == 0 || a.Spec.Paused || a.Annotations[v1.AnnotationSkipMigration] == "true" {
			continue
		}
		on := a.runsOn()
		switch name := usage.Choose(c.namespaces[a.Namespace].Labels, a.Spec.Template.Labels).Name; {
		case name == old && name != goal, name == oldest:
			if !stopped {
				c.t.Errorf("in the end, %s still chooses %s", a.key(), name)
			}
		case name != goal && name != "prod" && name != "default", on == goal || stopped:
		case failedAs(a, v1.ReasonTimeout) && (a.brokenOn == goal || a.brokenOn != "" && a.kind == kindStatefulSet), failedAs(a, v1.ReasonWrongRevision):
		default:
			c.t.Errorf("in the end, %s runs on %s", a.key(), on)
		}
	}
}
