package consumers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// The actions of the plan.
const (
	ActionSwitch passage.Action = "switch"
	ActionRevert passage.Action = "revert"
)

// Passage is the name of this passage.
const Passage = "meshservice"

// Decision is what to write and report, and when to requeue.
type Decision struct {
	// Record is the desired record in the status; nil for none.
	Record *kumav1alpha1.MeshMigration
	// Condition is nil if there is no intent.
	Condition *metav1.Condition
	Events    []Event
	// Watched are the proxies whose connections are awaited.
	Watched map[model.ProxyID]bool
	// RequeueAt is when the decision changes without an event; zero if only events can change it.
	RequeueAt time.Time
	// Unsent says that an earlier decision is not published yet.
	Unsent bool
}

// planner is an observation with the state of a decision.
type planner struct {
	Observed
	now     time.Time
	intent  *Intent
	invalid error
	record  *kumav1alpha1.MeshMigration
	// stamps are what each recorded consumer has followed.
	stamps map[string]stamp
	// consumers are the proxies of each consumer, by name.
	consumers map[string][]model.Proxy
	deadline  time.Time
	watched   map[model.ProxyID]bool
	unsent    bool
}

// Decide plans the next step for the consumers of a mesh.
func Decide(o Observed, now time.Time) Decision {
	p := newPlanner(o, now)
	if p.intent == nil && p.invalid == nil && o.Mesh.Status.Migration == nil {
		return Decision{}
	}
	p.update()
	switch {
	case p.revertsAtOnce():
		p.revert(func(kumav1alpha1.MigratedConsumer) bool { return true })
	case p.record.Revert && p.Serving && whilePaused(p) == nil:
		// Without proxies there is no acknowledgement to wait for, and they would take batches from those that run.
		p.revert(func(c kumav1alpha1.MigratedConsumer) bool {
			return c.State == kumav1alpha1.ConsumerWaiting && len(p.consumers[c.Name]) == 0
		})
	}
	p.updateOutcomes()
	plan := p.plan()
	if len(plan.Steps) > 0 || !p.record.Revert {
		plan.Hold = passage.FirstHold(p, gates...)
	}
	d := passage.Next(plan, batchingOf(p.record), now)
	if rested := p.delayEnd(); len(d.Start) > 0 && now.Before(rested) {
		d.Start, d.Outcome, d.RequeueAt = nil, passage.Held, rested
		d.Reason = passage.Hold(passage.CodeBatchDelay, "batch 1 follows at %s, %s after the last consumer was switched",
			rested.UTC().Format(time.RFC3339), batchingOf(p.record).Delay)
	}
	if absent := p.disconnectedProxies(d.Start); len(absent) > 0 {
		d.Start = nil
		d.Reason = passage.Hold(codeReconnecting, "waiting for %s to reconnect until %s",
			firstAndCount(absent), p.reconnectDeadline().UTC().Format(time.RFC3339))
		d.RequeueAt = p.reconnectDeadline()
	}
	if len(d.Start) > 0 {
		p.startBatch(d.Start)
		d = passage.Next(p.plan(), batchingOf(p.record), now)
	}
	return p.decision(d)
}

// codeReconnecting is the reason to hold just after this process started.
const codeReconnecting passage.Code = "Reconnecting"

func newPlanner(o Observed, now time.Time) *planner {
	p := &planner{Observed: o, now: now, stamps: stampsOf(o.Slices), consumers: map[string][]model.Proxy{}, watched: map[model.ProxyID]bool{}}
	p.intent, p.invalid = IntentOf(o.Mesh)
	if p.record = o.Mesh.Status.Migration.DeepCopy(); p.record == nil {
		p.record = &kumav1alpha1.MeshMigration{}
	}
	for _, proxy := range o.Proxies {
		p.consumers[proxy.Consumer] = append(p.consumers[proxy.Consumer], proxy)
	}
	for _, proxies := range p.consumers {
		slices.SortFunc(proxies, func(a, b model.Proxy) int { return cmp.Compare(a.ID.Name, b.ID.Name) })
	}
	return p
}

// update brings the record up to the intent and the existing consumers.
func (p *planner) update() {
	retry := p.Mesh.Annotations[fairlead.AnnotationRetry]
	if p.intent != nil && (p.intent.ID != p.record.Intent || p.hasOtherIntents()) {
		startIntent(p.record, *p.intent, retry, p.now, p.stamps)
	}
	retryFailed(p.record, p.intent, retry, p.now, p.stamps)
	if p.record.Revert || !p.Serving {
		return
	}
	prune(p.record, func(consumer string) bool { return len(p.consumers[consumer]) > 0 })
	// A completed intent takes up new consumers only in a mode that switches.
	if p.intent != nil && (p.Mesh.Mode() == kumav1alpha1.ModeReachableBackendRefs || p.record.Phase != string(passage.Completed)) {
		addConsumers(p.record, p.intent, slices.Collect(maps.Keys(p.consumers)), p.now)
	}
}

// hasOtherIntents says that a slice has not followed the intent: a process died while it started it.
func (p *planner) hasOtherIntents() bool {
	for _, s := range p.stamps {
		if s.intent != p.intent.ID {
			return true
		}
	}
	return false
}

// revertsAtOnce holds in a Disabled mesh, whose proxies have no MeshServices anyway.
func (p *planner) revertsAtOnce() bool {
	return p.record.Revert && p.intent != nil && p.Mesh.Mode() == kumav1alpha1.ModeDisabled && whilePaused(p) == nil
}

// revert reverts consumers of the intent without a batch.
func (p *planner) revert(selected func(kumav1alpha1.MigratedConsumer) bool) {
	if p.intent == nil {
		return
	}
	for i := range p.record.Consumers {
		if c := &p.record.Consumers[i]; p.intent.includes(c.Name) && selected(*c) {
			c.Switched = false
			setState(c, kumav1alpha1.ConsumerReverted, p.now)
		}
	}
}

// plan has a step for each consumer of the intent, and for those in progress.
func (p *planner) plan() passage.Plan {
	plan := planOf(p.Mesh, p.record, p.intent)
	p.holdDisconnected(plan.Steps)
	return plan
}

// holdDisconnected holds the consumers that have a proxy that is not connected: nobody would see whether it takes its
// configuration. Just after a start, proxies are given the time to reconnect instead.
func (p *planner) holdDisconnected(steps []passage.Step) {
	if p.intent == nil || p.intent.AllowDisconnected || p.record.Revert || !p.Serving || p.now.Before(p.reconnectDeadline()) {
		return
	}
	for i := range steps {
		if steps[i].State != passage.Pending {
			continue
		}
		if absent := p.disconnected(steps[i].Object); len(absent) > 0 {
			steps[i].Held = true
			steps[i].Reason = passage.Because(kumav1alpha1.ReasonProxiesNotConnected, "%s: check the pod, or go on without an "+
				"acknowledgement with `fairlead migrate mesh %s --allow-disconnected`", notConnected(absent), p.Mesh.Name)
		}
	}
}

// notConnected names one proxy and does not count the others: the text is recorded, and would change with each that connects.
func notConnected(proxies []string) string {
	if len(proxies) == 1 {
		return fmt.Sprintf("proxy %s is not connected", proxies[0])
	}
	return fmt.Sprintf("proxy %s and others are not connected", proxies[0])
}

// disconnected are the proxies of a consumer that are not connected. Only these are watched: the others acknowledge whatever
// changes in the mesh, and each acknowledgement would be a decision on all consumers.
func (p *planner) disconnected(consumer passage.Object) []string {
	var absent []string
	for _, proxy := range p.consumers[nameOf(consumer)] {
		if !p.Connection(proxy.ID).Connected {
			p.watched[proxy.ID] = true
			absent = append(absent, proxy.ID.Name)
		}
	}
	return absent
}

func planOf(mesh *kumav1alpha1.Mesh, record *kumav1alpha1.MeshMigration, intent *Intent) passage.Plan {
	plan := passage.Plan{
		Passage: Passage,
		Subject: passage.Object{APIVersion: kumav1alpha1.GroupVersion.String(), Kind: kumav1alpha1.MeshKind, Name: mesh.Name},
	}
	for i := range record.Consumers {
		c := &record.Consumers[i]
		step := stepOf(c, record.Revert)
		if step.State != passage.Running && (!intent.includes(c.Name) || record.Revert && c.State == kumav1alpha1.ConsumerSwitched) {
			continue
		}
		plan.Steps = append(plan.Steps, step)
	}
	for _, name := range absentConsumers(record, intent) {
		step := stepOf(&kumav1alpha1.MigratedConsumer{Name: name}, false)
		step.Held = true
		step.Reason = passage.Because(kumav1alpha1.ReasonConsumersAbsent, "the consumer has no proxies: start its pods, or run "+
			"`fairlead migrate mesh %s` without it in --consumers", mesh.Name)
		plan.Steps = append(plan.Steps, step)
	}
	return plan
}

// absentConsumers are the consumers that a recorded intent names, and that have no proxies to switch.
func absentConsumers(record *kumav1alpha1.MeshMigration, intent *Intent) []string {
	if intent == nil || len(intent.Consumers) == 0 || record.Revert || record.Intent != intent.ID {
		return nil
	}
	known := map[string]bool{}
	for i := range record.Consumers {
		known[record.Consumers[i].Name] = true
	}
	return slices.DeleteFunc(slices.Clone(intent.Consumers), func(name string) bool { return known[name] })
}

func stepOf(c *kumav1alpha1.MigratedConsumer, revert bool) passage.Step {
	step := passage.Step{
		Object: ObjectOf(c.Name), Action: ActionSwitch, From: tags, To: meshServices,
		Disruptive: true, Batch: int(c.Batch), State: passage.Pending,
	}
	if revert {
		step.Action, step.From, step.To = ActionRevert, meshServices, tags
	}
	switch c.State {
	case kumav1alpha1.ConsumerSwitching, kumav1alpha1.ConsumerReverting:
		step.State, step.StartedAt = passage.Running, c.Since.Time
	case kumav1alpha1.ConsumerSwitched, kumav1alpha1.ConsumerReverted:
		step.State = passage.Done
	case kumav1alpha1.ConsumerFailed:
		step.State = passage.Failed
	}
	if c.Finished != nil {
		step.EndedAt = c.Finished.Time
	}
	if c.Message != "" {
		step.Reason = passage.Because(string(c.State), "%s", c.Message)
	}
	return step
}

// Where a consumer is switched from and to.
const (
	tags         = "kuma.io/service"
	meshServices = "MeshService"
)

func batchingOf(record *kumav1alpha1.MeshMigration) passage.Batching {
	return passage.Batching{
		Size: int(record.BatchSize), Delay: time.Duration(record.DelaySeconds) * time.Second, FailFast: true,
	}
}

// startBatch starts a batch, and records the proxies whose ACK it waits for.
func (p *planner) startBatch(steps []passage.Step) {
	batch := map[passage.Object]int{}
	for _, step := range steps {
		batch[step.Object] = step.Batch
	}
	for i := range p.record.Consumers {
		c := &p.record.Consumers[i]
		number, starts := batch[ObjectOf(c.Name)]
		if !starts {
			continue
		}
		setState(c, kumav1alpha1.ConsumerSwitching, p.now)
		if c.Switched = !p.record.Revert; p.record.Revert {
			c.State = kumav1alpha1.ConsumerReverting
		}
		c.Batch = int32(number)
		for _, proxy := range p.consumers[c.Name] {
			p.watched[proxy.ID] = true
			if p.Connection(proxy.ID).Connected {
				c.Proxies = append(c.Proxies, proxy.ID.Name)
			}
		}
		p.unsent = !p.Reported
	}
}

// delayEnd is when the delay after the last consumer that an earlier intent switched is over: a new intent does not cut it
// short.
func (p *planner) delayEnd() time.Time {
	delay, last := batchingOf(p.record).Delay, time.Time{}
	if p.record.Revert || delay == 0 {
		return last
	}
	for i := range p.record.Consumers {
		c := &p.record.Consumers[i]
		if c.Batch > 0 {
			return time.Time{} // batches of this intent have opened, and follow one another
		}
		if c.Switched && c.Finished != nil && c.Finished.After(last) {
			last = c.Finished.Time
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(delay)
}

// reconnectDeadline is when proxies have had time to reconnect to this process.
func (p *planner) reconnectDeadline() time.Time { return p.Started.Add(p.Timeout) }

// disconnectedProxies are proxies of the next batch that have not reconnected. A batch without them would wait for no ACK.
func (p *planner) disconnectedProxies(steps []passage.Step) []string {
	if !p.now.Before(p.reconnectDeadline()) {
		return nil
	}
	var absent []string
	for _, step := range steps {
		absent = append(absent, p.disconnected(step.Object)...)
	}
	return absent
}

func nameOf(o passage.Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Kind + "/" + o.Name
}
