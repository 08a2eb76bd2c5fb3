package consumers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// startIntent starts the record of a new intent. Consumers whose stamp says that they follow it already stay as they are; those
// without a stamp have followed what the record says.
func startIntent(record *kumav1alpha1.MeshMigration, intent Intent, retry string, now time.Time, stamps map[string]stamp) {
	before := stampOf(record)
	consumers := record.Consumers
	*record = kumav1alpha1.MeshMigration{
		Intent: intent.ID, Retry: retry, Revert: intent.Revert, BatchSize: intent.BatchSize, DelaySeconds: intent.delaySeconds(),
	}
	for _, c := range consumers {
		followed, stamped := stamps[c.Name]
		if !stamped {
			followed = before
		}
		if followed.intent == intent.ID {
			record.Consumers = append(record.Consumers, c)
			continue
		}
		becomes := stateWhenSwitching
		if intent.Revert {
			becomes = stateWhenReverting
		}
		state := becomes(c, followed.revert, intent.includes(c.Name))
		if state == "" {
			continue
		}
		// Batches are numbered anew for each intent.
		c.Batch = 0
		if state != c.State {
			setState(&c, state, now)
		}
		record.Consumers = append(record.Consumers, c)
	}
}

// stateWhenSwitching is the state of a consumer at the start of an intent to switch; empty to drop it. Switched ones stay
// switched, and failed ones are retried.
func stateWhenSwitching(c kumav1alpha1.MigratedConsumer, wasRevert, meant bool) kumav1alpha1.ConsumerState {
	switch {
	case !c.Switched && meant:
		return kumav1alpha1.ConsumerWaiting
	case !c.Switched:
		return ""
	case wasRevert && c.State == kumav1alpha1.ConsumerWaiting, !meant && c.State == kumav1alpha1.ConsumerWaiting:
		return kumav1alpha1.ConsumerSwitched
	case meant && c.State == kumav1alpha1.ConsumerFailed:
		return kumav1alpha1.ConsumerWaiting
	}
	return c.State
}

// stateWhenReverting is the state of a consumer at the start of an intent to revert.
func stateWhenReverting(c kumav1alpha1.MigratedConsumer, wasRevert, meant bool) kumav1alpha1.ConsumerState {
	switch {
	case c.Switched && meant:
		return kumav1alpha1.ConsumerWaiting
	case c.Switched && c.State == kumav1alpha1.ConsumerFailed:
		return kumav1alpha1.ConsumerFailed
	case c.Switched:
		return kumav1alpha1.ConsumerSwitched
	case !wasRevert || !meant || c.State == kumav1alpha1.ConsumerReverted:
		return ""
	case c.State == kumav1alpha1.ConsumerFailed:
		return kumav1alpha1.ConsumerWaiting
	}
	return c.State
}

// setState sets the state of a consumer, and clears the fields of the previous one.
func setState(c *kumav1alpha1.MigratedConsumer, state kumav1alpha1.ConsumerState, now time.Time) {
	c.State, c.Since = state, metav1.NewTime(now.Truncate(time.Second))
	c.Finished, c.Proxies, c.Message = nil, nil, ""
	switch state {
	case kumav1alpha1.ConsumerSwitched, kumav1alpha1.ConsumerReverted, kumav1alpha1.ConsumerFailed:
		c.Finished = c.Since.DeepCopy()
	}
}

// retryFailed resets the failed consumers that have not followed a retry.
func retryFailed(record *kumav1alpha1.MeshMigration, intent *Intent, retry string, now time.Time, stamps map[string]stamp) {
	before := record.Retry
	if retry == "" {
		return
	}
	record.Retry = retry
	for i := range record.Consumers {
		c := &record.Consumers[i]
		followed := before
		if s, stamped := stamps[c.Name]; stamped {
			followed = s.retry
		}
		if followed != retry && c.State == kumav1alpha1.ConsumerFailed && intent.includes(c.Name) {
			c.Batch = 0
			setState(c, kumav1alpha1.ConsumerWaiting, now)
		}
	}
}

// addConsumers adds the consumers of an intent that the record lacks.
func addConsumers(record *kumav1alpha1.MeshMigration, intent *Intent, consumers []string, now time.Time) {
	known := map[string]bool{}
	for i := range record.Consumers {
		known[record.Consumers[i].Name] = true
	}
	for _, name := range consumers {
		if known[name] || !intent.includes(name) {
			continue
		}
		c := kumav1alpha1.MigratedConsumer{Name: name}
		setState(&c, kumav1alpha1.ConsumerWaiting, now)
		record.Consumers = append(record.Consumers, c)
	}
	sortConsumers(record)
}

const (
	// maxAbsent is how many workloads without a proxy stay in the record: one that is scaled to zero, or whose only pod is
	// replaced, is still switched when it is back.
	maxAbsent = 10_000
	// maxEnded is how many others do, such as bare pods and Jobs, which rarely return under the same name.
	maxEnded = 100
)

// returningKinds are those whose objects return under their names.
var returningKinds = map[string]bool{
	"CronJob": true, "DaemonSet": true, "Deployment": true, "ReplicaSet": true, "Rollout": true, "StatefulSet": true, kumav1alpha1.DataplaneKind: true,
}

// prune drops absent consumers from the record, except failed ones.
func prune(record *kumav1alpha1.MeshMigration, exists func(string) bool) {
	var absent, ended []kumav1alpha1.MigratedConsumer
	record.Consumers = slices.DeleteFunc(record.Consumers, func(c kumav1alpha1.MigratedConsumer) bool {
		if exists(c.Name) {
			return false
		}
		if c.State == kumav1alpha1.ConsumerSwitched {
			if returningKinds[ObjectOf(c.Name).Kind] {
				absent = append(absent, c)
			} else {
				ended = append(ended, c)
			}
		}
		return c.State == kumav1alpha1.ConsumerWaiting && !c.Switched
	})
	drop := map[string]bool{}
	for _, c := range slices.Concat(allButNewest(maxAbsent, absent), allButNewest(maxEnded, ended)) {
		drop[c.Name] = true
	}
	if len(drop) > 0 {
		record.Consumers = slices.DeleteFunc(record.Consumers, func(c kumav1alpha1.MigratedConsumer) bool { return drop[c.Name] })
	}
}

// allButNewest are the consumers that are over a number, the oldest ones.
func allButNewest(number int, consumers []kumav1alpha1.MigratedConsumer) []kumav1alpha1.MigratedConsumer {
	if len(consumers) <= number {
		return nil
	}
	slices.SortFunc(consumers, func(a, b kumav1alpha1.MigratedConsumer) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Name, b.Name))
	})
	return consumers[:len(consumers)-number]
}

// ObjectOf returns the workload of a consumer, or in universal its Dataplane.
func ObjectOf(consumer string) passage.Object {
	if parts := strings.SplitN(consumer, "/", 3); len(parts) == 3 {
		return passage.Object{Namespace: parts[0], Kind: parts[1], Name: parts[2]}
	}
	return passage.Object{Kind: kumav1alpha1.DataplaneKind, Name: consumer}
}

// countConsumers counts those of the record. Others of the Mesh are counted by the planner, which knows them.
func countConsumers(record *kumav1alpha1.MeshMigration) {
	record.Total, record.Switched, record.Failed = max(record.Total, int32(len(record.Consumers))), 0, 0
	for i := range record.Consumers {
		switch c := &record.Consumers[i]; {
		case c.State == kumav1alpha1.ConsumerFailed:
			record.Failed++
		case c.Switched && c.State != kumav1alpha1.ConsumerSwitching:
			record.Switched++
		}
	}
}
