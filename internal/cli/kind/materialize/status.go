package materialize

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
)

// rolloutStatus is where the rollout of a Materialize is.
type rolloutStatus struct {
	// Phase is the reason of the condition UpToDate. Empty: the operator has said nothing yet.
	Phase v1alpha2.Reason `json:"phase"`
	// Active is the generation that serves, Next the one that is to. 0: there is none.
	Active      int64  `json:"activeGeneration"`
	Next        int64  `json:"nextGeneration,omitempty"`
	ActiveImage string `json:"activeImage,omitempty"`
	NextImage   string `json:"nextImage,omitempty"`
	// Down holds when the active generation has no pod that serves, and no other one does yet.
	Down bool `json:"down,omitempty"`
	// Leader is what the environmentd of the next generation last said to the operator.
	Leader      string                   `json:"leader,omitempty"`
	Strategy    v1alpha2.RolloutStrategy `json:"strategy"`
	RequestedAt time.Time                `json:"requestedAt,omitzero"`
	// Deadline is when the rollout is cancelled, if it is not promoting by then.
	Deadline time.Time   `json:"deadline,omitzero"`
	Pods     []podStatus `json:"pods"`
	// Deleting holds when all of it goes, and nobody reports any more.
	Deleting bool `json:"deleting,omitempty"`
	// Advice are things that a person could do.
	Advice []string `json:"advice"`
	// progress is what the operator last saw of the rollout, nil if nothing is being rolled out.
	progress *v1alpha2.RolloutProgress
	// expired is about the spec as it is now: the phase may still be about the one before.
	expired bool
}

type podStatus struct {
	Name   string    `json:"name"`
	Ready  bool      `json:"ready"`
	Status string    `json:"status"`
	Since  time.Time `json:"since,omitzero"`
}

// status at the time now.
func (e environment) status(now time.Time) *rolloutStatus {
	m := e.Materialize
	r := &rolloutStatus{
		Active: m.Status.ActiveGeneration, ActiveImage: m.Status.LastCompletedRolloutEnvironmentdImageRef,
		Down: e.IsDown(), Deleting: !m.DeletionTimestamp.IsZero(), expired: e.Expired(now), Strategy: m.Spec.RolloutStrategy, Pods: []podStatus{}, Advice: []string{},
		progress: rollout.Progress(m),
	}
	if condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionUpToDate); condition != nil {
		r.Phase = v1alpha2.Reason(condition.Reason)
	}
	if e.isRollingOut() {
		r.Next, r.NextImage, r.Leader = e.Next().Number, e.NextImage(), leaderOf(e.Leader)
	}
	if e.Underway() || e.Promoting() && m.Status.RolloutRequestedAt != nil {
		r.RequestedAt = m.Status.RolloutRequestedAt.Time
	}
	if !r.expired {
		r.Deadline = e.Deadline()
	}
	for _, pod := range e.pods {
		r.Pods = append(r.Pods, podStatusOf(pod))
	}
	r.Advice = append(r.Advice, e.advice(r)...)
	return r
}

func leaderOf(answer v1alpha2.LeaderAnswer) string {
	if answer.Status == v1alpha2.LeaderUnknown {
		return strings.TrimPrefix(answer.Message, "environmentd ")
	}
	return string(answer.Status)
}

// advice is what a person could do about a rollout.
func (e environment) advice(r *rolloutStatus) []string {
	command := func(verb string) string {
		return fmt.Sprintf("fairlead %s mzs %s -n %s", verb, e.Materialize.Name, e.Materialize.Namespace)
	}
	switch {
	case !e.Materialize.DeletionTimestamp.IsZero() || r.Next == 0:
		return nil
	case e.Promoting():
		return []string{"The promotion has started and cannot be aborted."}
	}
	var parts []string
	// One that causes downtime is promoted as soon as its pods are ready anyway.
	if e.Underway() && !r.expired && !e.Forced() && r.Strategy != v1alpha2.RolloutImmediatelyPromoteCausingDowntime {
		switch r.Phase {
		case v1alpha2.ReasonReadyToPromote:
			parts = append(parts, fmt.Sprintf("To promote generation %d: %s", r.Next, command("promote")))
		case v1alpha2.ReasonApplying:
			parts = append(parts, fmt.Sprintf("To promote generation %d as soon as its pods are ready, caught up or not: %s",
				r.Next, command("promote")))
		}
	}
	switch {
	case r.Active > 0 && r.Down:
		parts = append(parts, fmt.Sprintf("To start generation %d again: %s", r.Active, command("abort")))
	case r.Active > 0:
		parts = append(parts, fmt.Sprintf("To return to generation %d: %s", r.Active, command("abort")))
	}
	return parts
}

// needsUser means that only a person can help, paused or not. What cannot be made is tried again, and is in progress for as
// long.
func (r *rolloutStatus) needsUser() bool {
	return r.expired && r.Phase == v1alpha2.ReasonRolloutTimeout
}

// downText says so, and why.
func (r *rolloutStatus) downText() string {
	if r.Next > 0 && r.Strategy == v1alpha2.RolloutImmediatelyPromoteCausingDowntime {
		return fmt.Sprintf("no generation: generation %d was stopped to make room for generation %d", r.Active, r.Next)
	}
	return fmt.Sprintf("no generation: generation %d has no ready pod", r.Active)
}

func podStatusOf(pod corev1.Pod) podStatus {
	s := podStatus{Name: pod.Name, Status: string(pod.Status.Phase), Since: pod.CreationTimestamp.Time}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			s.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "":
			s.Status = c.Reason
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.Status = c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 && c.State.Terminated.Reason != "":
			s.Status = c.State.Terminated.Reason
		}
	}
	if pod.DeletionTimestamp != nil {
		s.Status = "Terminating"
	}
	return s
}

// status is where the rollout of a Materialize is.
type status struct {
	render.StatusReport
	Rollout *rolloutStatus `json:"rollout,omitempty"`
	note    string
}

func newStatus(e environment, plan passage.Plan, now time.Time) *status {
	m := e.Materialize
	s := &status{
		StatusReport: render.NewStatusReport(plan, passage.Batching{}, m.Status.Conditions, m.Status.ObservedGeneration == m.Generation, now),
		Rollout:      e.status(now),
		note:         e.note(),
	}
	s.Deleting = s.Rollout.Deleting
	s.NeedsUser = s.State == passage.Held && s.Rollout.needsUser()
	s.setHeadline(rollout.NewForecast(e.Observed, nil, now))
	return s
}

// setHeadline takes what the operator reports, or what it will make of the spec, and not how many steps are left, which are
// very unlike each other.
func (s *status) setHeadline(forecast *rollout.Forecast) {
	condition := meta.FindStatusCondition(s.Conditions, v1alpha2.ConditionUpToDate)
	switch {
	case s.Deleting:
		s.Headline = "Materialize is being deleted, and its objects with it"
	case s.State == passage.Held && s.Reason != nil && !(s.Reported && s.Rollout.needsUser()):
		s.Headline = s.Reason.Message
	case condition != nil && s.Reported:
		reason := passage.Because(condition.Reason, "%s", refreshPodCount(condition.Message, s.Rollout.progress, s.Rollout.Pods))
		s.Reason, s.Headline = &reason, reason.String()
	default:
		s.Headline = forecast.Verdict
	}
}

// PrintDetails leaves out conditions, which are in the headline, and steps, which are in the plan.
func (s *status) PrintDetails(w io.Writer, format render.Format) {
	s.printRollout(w, format)
	render.Note(w, s.note)
}

func (s *status) DrawDetails(w io.Writer) { s.printRollout(w, render.Text) }

// WriteChanges leaves out steps: they come and go, several for the same object.
func (s *status) WriteChanges(l *render.LineWriter) {
	l.Line("state", fmt.Sprintf("%s to %s: %s", s.Subject, render.OrDash(s.Target), s.State))
	l.Line("headline", s.Headline)
	r := s.Rollout
	for _, pod := range r.Pods {
		line := fmt.Sprintf("Pod %s/%s: %s", s.Subject.Namespace, pod.Name, pod.Status)
		if pod.Ready {
			line += ", ready"
		}
		l.Line("pod "+pod.Name, line)
	}
	if r.Leader != "" {
		l.Line("leader", fmt.Sprintf("environmentd of generation %d: %s", r.Next, r.Leader))
	}
	if r.Down {
		l.OnChange("down", fmt.Sprint(r.Active), "Serves: "+r.downText())
	} else {
		l.Forget("down")
	}
	for _, advice := range r.Advice {
		l.OnChange(advice, fmt.Sprint(r.Next), advice)
	}
}

// refreshPodCount gives how many pods are ready as they are now: what the operator last counted may be a moment older.
func refreshPodCount(message string, counted *v1alpha2.RolloutProgress, pods []podStatus) string {
	if counted == nil || counted.Pods == nil || int(counted.Pods.Desired) != len(pods) {
		return message
	}
	now := v1alpha2.PodCount{Ready: int32(countReady(pods)), Desired: counted.Pods.Desired}
	return strings.Replace(message, rollout.FormatPodCount(*counted.Pods), rollout.FormatPodCount(now), 1)
}

func countReady(pods []podStatus) int {
	ready := 0
	for _, pod := range pods {
		if pod.Ready {
			ready++
		}
	}
	return ready
}

func (s *status) printRollout(w io.Writer, format render.Format) {
	r := s.Rollout
	fmt.Fprintln(w)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s%s\n", name+":", fmt.Sprintf(format, args...))
	}
	line("Phase", "%s", render.OrDash(string(r.Phase)))
	generation, image := fmt.Sprint(r.Active), r.ActiveImage
	if r.Active == 0 {
		generation, image = "none", "none"
	}
	if r.Next > 0 {
		generation += fmt.Sprintf(" -> %d", r.Next)
		if image != r.NextImage {
			image += " -> " + r.NextImage
		}
	}
	line("Generation", "%s", generation)
	line("Image", "%s", image)
	if r.Down {
		line("Serves", "%s", r.downText())
	}
	if r.Next > 0 {
		line("Strategy", "%s", render.OrDash(string(r.Strategy)))
		line("Next", "%s", render.OrDash(r.Leader))
	}
	if !r.RequestedAt.IsZero() {
		line("Requested", "%s ago", duration.HumanDuration(s.At.Sub(r.RequestedAt)))
	}
	if !r.Deadline.IsZero() {
		line("Timeout", "in %s, if it is not promoting by then", duration.HumanDuration(r.Deadline.Sub(s.At)))
	}
	if steps := remainingActions(s.Steps); steps != "" {
		line("To come", "%s", steps)
	}
	render.PrintList(w, format, []string{"POD", "READY", "STATUS", "AGE"}, r.Pods, func(pod podStatus) []string {
		return []string{pod.Name, render.YesOrNo(pod.Ready), pod.Status, duration.HumanDuration(s.At.Sub(pod.Since))}
	})
	if len(r.Advice) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(r.Advice, "\n"))
	}
}

// remainingActions are the actions that are left, in their order. How many objects each of them has to do with is in the plan.
func remainingActions(steps []passage.Step) string {
	var actions []string
	for _, s := range steps {
		action := string(s.Action)
		if !s.State.Settled() && (len(actions) == 0 || actions[len(actions)-1] != action) {
			actions = append(actions, action)
		}
	}
	return strings.Join(actions, ", ")
}
