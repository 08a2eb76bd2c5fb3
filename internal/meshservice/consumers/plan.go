package consumers

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// What is done to a consumer.
const (
	ActionSwitch passage.Action = "switch"
	ActionRevert passage.Action = "revert"
)

// Passage is the name of this passage.
const Passage = "meshservice"

// Decision is what is to be written and told, and when to look again.
type Decision struct {
	// Record is the one that the status should have; nil for none.
	Record *kumav1alpha1.MeshMigration
	// Condition is nil where nobody has asked for anything.
	Condition *metav1.Condition
	Events    []Event
	// Watched are the proxies whose connections matter now.
	Watched map[model.ProxyID]bool
	// LookAgain is when time alone changes the answer; zero if only events can.
	LookAgain time.Time
	// Unsent says that what was decided before has not reached the connections.
	Unsent bool
}

// planner is an observation while it is thought about.
type planner struct {
	Observed
	now     time.Time
	intent  *Intent
	invalid error
	record  *kumav1alpha1.MeshMigration
	// consumers have their proxies, by name.
	consumers map[string][]model.Proxy
	deadline  time.Time
	watched   map[model.ProxyID]bool
	unsent    bool
}

// Decide what becomes of the consumers of a mesh.
func Decide(o Observed, now time.Time) Decision {
	p := newPlanner(o, now)
	if p.intent == nil && p.invalid == nil && o.Mesh.Status.Migration == nil {
		return Decision{}
	}
	p.update()
	if p.revertsAtOnce() {
		p.revertAll()
	}
	p.updateOutcomes()
	plan := p.plan()
	if len(plan.Steps) > 0 || !p.record.Revert {
		plan.Hold = passage.FirstHold(p, gates...)
	}
	d := passage.Next(plan, batchingOf(p.record), now)
	if rested := p.delayEnd(); len(d.Start) > 0 && now.Before(rested) {
		d.Start, d.Outcome, d.LookAgain = nil, passage.Held, rested
		d.Reason = passage.Hold(passage.CodeBatchDelay, "batch 1 follows at %s, %s after the last consumer was switched",
			rested.UTC().Format(time.RFC3339), batchingOf(p.record).Delay)
	}
	if absent := p.disconnectedProxies(d.Start); len(absent) > 0 {
		d.Start = nil
		d.Reason = passage.Hold(codeReconnecting, "waiting for %s to reconnect until %s",
			firstAndCount(absent), p.reconnectDeadline().UTC().Format(time.RFC3339))
		d.LookAgain = p.reconnectDeadline()
	}
	if len(d.Start) > 0 {
		p.startBatch(d.Start)
		d = passage.Next(p.plan(), batchingOf(p.record), now)
	}
	return p.decision(d)
}

// codeReconnecting is why nothing starts just after this process has.
const codeReconnecting passage.Code = "Reconnecting"

func newPlanner(o Observed, now time.Time) *planner {
	p := &planner{Observed: o, now: now, consumers: map[string][]model.Proxy{}, watched: map[model.ProxyID]bool{}}
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

// update brings the record up to what is asked for and to who is there.
func (p *planner) update() {
	retry := p.Mesh.Annotations[fairlead.AnnotationRetry]
	if p.intent != nil && p.intent.ID != p.record.Intent {
		startIntent(p.record, *p.intent, retry, p.now)
	}
	retryFailed(p.record, p.intent, retry, p.now)
	if p.record.Revert || !p.Serving {
		return
	}
	prune(p.record, func(consumer string) bool { return len(p.consumers[consumer]) > 0 })
	// Once it is done, more may only join where there is something to switch.
	if p.intent != nil && (p.Mesh.Mode() == kumav1alpha1.ModeReachableBackendRefs || p.record.Phase != string(passage.Completed)) {
		names := make([]string, 0, len(p.consumers))
		for name := range p.consumers {
			names = append(names, name)
		}
		addConsumers(p.record, p.intent, names, p.now)
	}
}

// revertsAtOnce holds where no proxy is given a MeshService anyway.
func (p *planner) revertsAtOnce() bool {
	return p.record.Revert && p.intent != nil && p.Mesh.Mode() == kumav1alpha1.ModeDisabled && holdPaused(p) == nil
}

func (p *planner) revertAll() {
	for i := range p.record.Consumers {
		if c := &p.record.Consumers[i]; p.intent.includes(c.Name) {
			c.Switched = false
			setState(c, kumav1alpha1.ConsumerReverted, p.now)
		}
	}
}

// plan has a step for each consumer that the intent is about, or that is on its way.
func (p *planner) plan() passage.Plan { return planOf(p.Mesh, p.record, p.intent) }

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
	return plan
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

// Where a consumer comes from and goes to.
const (
	tags         = "kuma.io/service"
	meshServices = "MeshService"
)

func batchingOf(record *kumav1alpha1.MeshMigration) passage.Batching {
	return passage.Batching{
		Size: int(record.BatchSize), Delay: time.Duration(record.DelaySeconds) * time.Second, FailFast: true,
	}
}

// startBatch starts a batch: what it is measured by is written down with it.
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
		p.unsent = true
	}
}

// delayEnd is when what was switched last, for whoever asked before, has been left alone for the delay: to ask once more does not
// cut it short.
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

// reconnectDeadline is when proxies have had time to find this process.
func (p *planner) reconnectDeadline() time.Time { return p.Started.Add(p.Timeout) }

// disconnectedProxies are proxies of what is to start that have yet to find this process. A batch that opened without them would
// be measured by nobody.
func (p *planner) disconnectedProxies(steps []passage.Step) []string {
	if !p.now.Before(p.reconnectDeadline()) {
		return nil
	}
	var absent []string
	for _, step := range steps {
		for _, proxy := range p.consumers[nameOf(step.Object)] {
			p.watched[proxy.ID] = true
			if !p.Connection(proxy.ID).Connected {
				absent = append(absent, proxy.ID.Name)
			}
		}
	}
	return absent
}

func nameOf(o passage.Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Kind + "/" + o.Name
}
