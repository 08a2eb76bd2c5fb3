package consumers

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// Event is an event to record.
type Event struct {
	Type, Reason, Message string
}

// Reasons of events, beyond those of the condition.
const (
	eventBatchOpened    = "BatchOpened"
	eventBatchSettled   = "BatchSettled"
	eventConsumerFailed = "ConsumerFailed"
)

// decision returns the decision for the current record and the next step.
func (p *planner) decision(d passage.Decision) Decision {
	plan := p.plan()
	counts := plan.Counts()
	p.noteHeld(plan.Steps)
	p.record.Batch, p.record.Batches, p.record.Phase = int32(d.Batch), int32(d.Batches), string(d.Outcome)
	p.countConsumers()
	decided := Decision{
		Condition: p.condition(d, counts), Events: p.eventsFor(d), Watched: p.watched, RequeueAt: earlier(d.RequeueAt, p.deadline),
		Unsent: p.unsent,
	}
	if d.Outcome == passage.Completed && p.record.Revert {
		p.dropReverted()
	}
	if !p.record.Revert || len(p.record.Consumers) > 0 {
		decided.Record = p.record
	}
	return decided
}

// noteHeld writes down, for each consumer that waits, what it waits for by itself.
func (p *planner) noteHeld(steps []passage.Step) {
	why := map[string]string{}
	for i := range steps {
		if steps[i].Held {
			why[nameOf(steps[i].Object)] = steps[i].Reason.Message
		}
	}
	for i := range p.record.Consumers {
		if c := &p.record.Consumers[i]; c.State == kumav1alpha1.ConsumerWaiting {
			c.Message = why[c.Name]
		}
	}
}

// dropReverted drops the reverted consumers.
func (p *planner) dropReverted() {
	p.record.Consumers = slices.DeleteFunc(p.record.Consumers, func(c kumav1alpha1.MigratedConsumer) bool {
		return c.State == kumav1alpha1.ConsumerReverted
	})
	p.record.Batch, p.record.Batches = 0, 0
	p.countConsumers()
}

// countConsumers counts the consumers of the mesh: those of the record, and those with proxies that the record does not have,
// because they are not part of the intent or are reverted.
func (p *planner) countConsumers() {
	if p.Serving {
		recorded := 0
		for i := range p.record.Consumers {
			if len(p.consumers[p.record.Consumers[i].Name]) > 0 {
				recorded++
			}
		}
		p.record.Total = int32(len(p.consumers) - recorded + len(p.record.Consumers))
	}
	countConsumers(p.record)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// condition reports the progress.
func (p *planner) condition(d passage.Decision, counts passage.Counts) *metav1.Condition {
	c := &metav1.Condition{
		Type: kumav1alpha1.ConditionConsumersSwitched, Status: metav1.ConditionFalse, ObservedGeneration: p.Mesh.Generation,
	}
	text := p.progressText(d, counts)
	switch {
	case counts.Failed > 0:
		c.Reason = kumav1alpha1.ReasonFailed
		text += "; " + p.failureText()
	case d.Outcome == passage.Held && counts.Total == 0:
		c.Reason, text = string(d.Reason.Code), d.Reason.Message
	case d.Outcome == passage.Held:
		c.Reason = string(d.Reason.Code)
		text += ": " + d.Reason.Message
	case d.Outcome == passage.Completed && p.record.Revert:
		c.Reason, text = kumav1alpha1.ReasonReverted, p.revertedText()
	case d.Outcome == passage.Completed:
		c.Status, c.Reason = metav1.ConditionTrue, kumav1alpha1.ReasonSwitched
	default:
		c.Reason = kumav1alpha1.ReasonSwitching
		if p.record.Revert {
			c.Reason = kumav1alpha1.ReasonReverting
		}
		if d.Reason != nil {
			text += ": " + d.Reason.Message
		}
	}
	c.Message = passage.Because(c.Reason, "%s", text).Message
	return c
}

func (p *planner) progressText(d passage.Decision, counts passage.Counts) string {
	verb := "switched"
	if p.record.Revert {
		verb = "reverted"
	}
	text := fmt.Sprintf("%d of %s %s", counts.Done, consumersText(counts.Total), verb)
	if counts.Total == 0 {
		text = "no consumers to switch"
	}
	if counts.Failed > 0 {
		text += fmt.Sprintf(", %d failed", counts.Failed)
	}
	if d.Batches > 0 && d.Outcome != passage.Completed {
		text += fmt.Sprintf(", batch %d of %d", d.Batch, d.Batches)
	}
	return text
}

func (p *planner) revertedText() string {
	stay := 0
	for i := range p.record.Consumers {
		if p.record.Consumers[i].Switched {
			stay++
		}
	}
	if stay == 0 {
		return "no consumer is switched"
	}
	return fmt.Sprintf("the requested consumers are reverted; %s %s switched", consumersText(stay), stays(stay))
}

// failureText describes the first failure, and counts the others.
func (p *planner) failureText() string {
	var first *kumav1alpha1.MigratedConsumer
	more := -1
	for i := range p.record.Consumers {
		if c := &p.record.Consumers[i]; c.State == kumav1alpha1.ConsumerFailed && p.intent.includes(c.Name) {
			if more++; first == nil {
				first = c
			}
		}
	}
	if first == nil {
		return ""
	}
	text := first.Name + ": " + first.Message
	if more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// eventsFor returns the events of changes since the recorded status.
func (p *planner) eventsFor(d passage.Decision) []Event {
	var news []Event
	before := map[string]kumav1alpha1.MigratedConsumer{}
	wasOver := ""
	if old := p.Mesh.Status.Migration; old != nil {
		wasOver = old.Intent + old.Phase
		for _, c := range old.Consumers {
			before[c.Name] = c
		}
	}
	var opened []string
	running := 0
	// ended is the batch plus one, since consumers of an earlier intent are in batch 0.
	ended, failed := int32(0), map[int32]bool{}
	for _, c := range p.record.Consumers {
		was := before[c.Name]
		begun := isRunning(c.State) && (!isRunning(was.State) || was.Batch != c.Batch && c.Batch != 0)
		switch {
		case begun:
			opened = append(opened, c.Name)
		case isRunning(c.State):
			running++
		case c.State == kumav1alpha1.ConsumerFailed && isRunning(was.State):
			news = append(news, Event{corev1.EventTypeWarning, eventConsumerFailed, passage.Because(eventConsumerFailed, "%s: %s", c.Name, c.Message).Message})
		case isRunning(was.State) && c.Finished != nil:
			ended = max(ended, c.Batch+1)
		}
		if c.State == kumav1alpha1.ConsumerFailed {
			failed[c.Batch+1] = true
		}
	}
	if ended > 0 && running == 0 && !failed[ended] {
		news = append(news, Event{corev1.EventTypeNormal, eventBatchSettled, fmt.Sprintf("the batch has settled: %s", p.progressText(d, p.plan().Counts()))})
	}
	if len(opened) > 0 {
		news = append(news, Event{corev1.EventTypeNormal, eventBatchOpened, fmt.Sprintf("batch %d of %d: %s", d.Batch, d.Batches, firstAndCount(opened))})
	}
	if d.Outcome == passage.Completed && len(p.record.Consumers) > 0 && wasOver != p.record.Intent+string(passage.Completed) {
		c := p.condition(d, p.plan().Counts())
		news = append(news, Event{corev1.EventTypeNormal, c.Reason, c.Message})
	}
	return news
}

func (r *reconciler) recordEvents(mesh *kumav1alpha1.Mesh, events []Event) {
	for _, e := range events {
		r.recorder.Eventf(mesh, nil, e.Type, e.Reason, "switch", "%s", e.Message)
	}
}

// startedSteps are the steps that a decision starts.
func startedSteps(before, after *kumav1alpha1.MeshMigration) []passage.Step {
	if after == nil {
		return nil
	}
	running := map[string]kumav1alpha1.ConsumerState{}
	if before != nil {
		for _, c := range before.Consumers {
			running[c.Name] = c.State
		}
	}
	var started []passage.Step
	for i := range after.Consumers {
		c := &after.Consumers[i]
		if !isRunning(c.State) || running[c.Name] == c.State {
			continue
		}
		step := stepOf(c, c.State == kumav1alpha1.ConsumerReverting)
		step.Reason = passage.Because(string(c.State), "batch %d of %d", after.Batch, after.Batches)
		started = append(started, step)
	}
	return started
}

// isRunning says whether a consumer is being switched or reverted.
func isRunning(state kumav1alpha1.ConsumerState) bool {
	return state == kumav1alpha1.ConsumerSwitching || state == kumav1alpha1.ConsumerReverting
}

func consumersText(n int) string {
	if n == 1 {
		return "1 consumer"
	}
	return fmt.Sprintf("%d consumers", n)
}

func stays(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}

var consumersByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "fairlead_mesh_consumers",
	Help: "Consumers of a mesh by migration state.",
}, []string{"mesh", "state"})

var switchReason = kube.NewReasonGauge("fairlead_mesh_switch_reason",
	"1 for the reason of the condition ConsumersSwitched of a Mesh, and between two batches for BatchDelay.", "mesh")

func init() { metrics.Registry.MustRegister(consumersByState, switchReason) }

func setMetrics(mesh string, record *kumav1alpha1.MeshMigration, condition *metav1.Condition) {
	if condition != nil {
		switchReason.Set(reasonOf(condition, record), mesh)
	}
	counts := map[kumav1alpha1.ConsumerState]int{
		kumav1alpha1.ConsumerWaiting: 0, kumav1alpha1.ConsumerSwitching: 0, kumav1alpha1.ConsumerSwitched: 0,
		kumav1alpha1.ConsumerReverting: 0, kumav1alpha1.ConsumerReverted: 0, kumav1alpha1.ConsumerFailed: 0,
	}
	if record != nil {
		for i := range record.Consumers {
			counts[record.Consumers[i].State]++
		}
	}
	for state, n := range counts {
		consumersByState.WithLabelValues(mesh, string(state)).Set(float64(n))
	}
}

// reasonOf is the reason of the condition, or BatchDelay between two batches.
func reasonOf(condition *metav1.Condition, record *kumav1alpha1.MeshMigration) string {
	underway := condition.Reason == kumav1alpha1.ReasonSwitching || condition.Reason == kumav1alpha1.ReasonReverting
	if underway && record != nil && record.Phase == string(passage.Delaying) {
		return string(passage.CodeBatchDelay)
	}
	return condition.Reason
}

func deleteMetrics(mesh string) {
	consumersByState.DeletePartialMatch(prometheus.Labels{"mesh": mesh})
	switchReason.Set("", mesh)
}
