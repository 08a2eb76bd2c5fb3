package scale_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What the numbers are held to.
const (
	// maxRatio is by the medians of all rounds: a single round on a machine that stands still for a moment says nothing.
	maxRatio = 1.05
	// maxProcessorRatio is the processor time of the operator to that of the bare client, which follows the same objects and has
	// nothing to plan, to record or to serve. Seconds change with the machine, by half from one minute to the next.
	maxProcessorRatio = 2
	// maxProcessor is 1.5 s for 200 workloads. A slow machine may take more, where a bare client takes more as well.
	maxProcessor = 7500 * time.Microsecond
	// maxOthers is how many writes there may be per workload, besides the one that moves it and the expected events.
	maxOthers = 0.2
	// maxLists is how many there may be per reconcile, by anybody: a watch of something quiet may have to begin anew.
	maxLists  = 0.01
	maxMemory = 150 // MiB
	maxGrowth = 0.1
)

// BenchmarkMigration moves all workloads of a mesh from one control plane to another and back, by turns with the operator
// and with a bare client.
func BenchmarkMigration(b *testing.B) {
	var all []*comparison
	for _, c := range []*comparison{
		{extent: extent{namespaces: 100, deployments: 200}, rounds: 8},
		{extent: extent{namespaces: 500, deployments: 2000}, rounds: 2},
	} {
		b.Run(strconv.Itoa(c.deployments), func(b *testing.B) {
			m := newMesh(b, c.extent)
			all = append(all, c)
			b.Run("measure migration completion time", func(b *testing.B) {
				for b.Loop() {
					c.measure(b, m)
				}
				b.ReportMetric(c.ratio(), "ratio")
			})
			b.Run("operator memory usage remains stable", func(b *testing.B) { verify(b, c.memoryFindings) })
			b.Run("Kubernetes API rate limits not exceeded", func(b *testing.B) { verify(b, c.requestFindings) })
		})
	}
	printTable(all)
}

// verify fails the benchmark for what is found in what has been measured before.
func verify(b *testing.B, find func() []string) {
	var found []string
	for b.Loop() {
		found = find()
	}
	for _, finding := range found {
		b.Error(finding)
	}
}

// comparison is what the migrations of one mesh took.
type comparison struct {
	extent
	rounds int
	// fairlead and bare are by whom the migrations were made.
	fairlead, bare []trip
}

// measure lets both have their turns, each as often first as second.
func (c *comparison) measure(b *testing.B, m *mesh) {
	byFairlead := func(round int) {
		m.aim(b, m.other())
		done := m.migrate(b)
		c.fairlead = append(c.fairlead, done)
		fmt.Printf("%s, round %d: Fairlead took %.1f s, and %.2f s of processor time, wrote %s, had %s\n",
			c.extent, round, done.took.Seconds(), done.processor.Seconds(), done.account, done.memory)
	}
	byBareClient := func(round int) {
		m.aim(b, m.other())
		done := m.migrateBare(b)
		c.bare = append(c.bare, done)
		fmt.Printf("%s, round %d: a bare client took %.1f s, and %.2f s of processor time\n",
			c.extent, round, done.took.Seconds(), done.processor.Seconds())
	}
	for round := 1; round <= c.rounds; round += 2 {
		byFairlead(round)
		byBareClient(round)
		byBareClient(round + 1)
		byFairlead(round + 1)
	}
	if ratio := c.ratio(); ratio > maxRatio {
		b.Errorf("Fairlead takes %.3f times as long as a bare client: more than %.2f", ratio, maxRatio)
	}
	if ratio, each := c.processorRatio(), c.processor(c.fairlead); ratio > maxProcessorRatio && each > maxProcessor {
		b.Errorf("Fairlead takes %s of processor time per workload, more than %s, and %.2f times that of a bare client, more than %d",
			each, maxProcessor, ratio, maxProcessorRatio)
	}
}

// ratio of the median that Fairlead took to the median that the bare client took.
func (c *comparison) ratio() float64 {
	took := func(t trip) time.Duration { return t.took }
	return float64(medianOf(each(c.fairlead, took))) / float64(medianOf(each(c.bare, took)))
}

// processor time per workload, in the median of migrations.
func (c *comparison) processor(of []trip) time.Duration {
	used := medianOf(each(of, func(t trip) time.Duration { return t.processor }))
	return (used / time.Duration(c.deployments)).Round(10 * time.Microsecond)
}

func (c *comparison) processorRatio() float64 {
	return float64(c.processor(c.fairlead)) / float64(c.processor(c.bare))
}

// otherWrites are those per workload that are neither moves nor expected events: one of each workload and each relabelled
// namespace, two of each batch and two of the migration.
func (c *comparison) otherWrites(t trip) float64 {
	batches := (c.deployments + batchSize - 1) / batchSize
	expected := c.deployments + c.relabelled() + 2*batches + 2
	return (t.account.others - float64(expected)) / float64(c.deployments)
}

func each[T any](all []T, respect func(T) time.Duration) []time.Duration {
	var values []time.Duration
	for _, one := range all {
		values = append(values, respect(one))
	}
	return values
}

// worst of the migrations by Fairlead, in one respect.
func (c *comparison) worst(respect func(trip) float64) float64 {
	worst := math.Inf(-1)
	for _, t := range c.fairlead {
		worst = max(worst, respect(t))
	}
	return worst
}

func (c *comparison) memoryFindings() (found []string) {
	for i, t := range c.fairlead {
		if peak := t.memory.peak; peak > maxMemory {
			found = append(found, fmt.Sprintf("migration %d: the operator had up to %.0f MiB: more than %d", i+1, peak, maxMemory))
		}
		if growth := t.memory.growth(); math.Abs(growth) > maxGrowth {
			found = append(found, fmt.Sprintf("migration %d: the memory of the operator changed by %+.1f %%: more than %.0f %%",
				i+1, 100*growth, 100*maxGrowth))
		}
	}
	return found
}

func (c *comparison) requestFindings() (found []string) {
	for i, t := range c.fairlead {
		finding := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("migration %d: ", i+1)+fmt.Sprintf(format, args...))
		}
		a := t.account
		if int(a.deployments) != c.deployments {
			finding("%.0f writes to Deployments: want one for each of %d", a.deployments, c.deployments)
		}
		if int(a.namespaces) != c.relabelled() {
			finding("%.0f writes to namespaces: want one for each of %d", a.namespaces, c.relabelled())
		}
		if others := c.otherWrites(t); others > maxOthers {
			finding("%.3f other writes per workload: more than %.1f", others, maxOthers)
		}
		if a.lists.total() > maxLists*a.reconciles {
			finding("there were lists: %v", map[asked]float64(a.lists))
		}
		if a.tooMany > 0 {
			finding("the API server said %.0f times that there were too many requests", a.tooMany)
		}
	}
	return found
}

// trip is a migration.
type trip struct {
	took time.Duration
	// processor is the time of it that the operator, or the bare client, used meanwhile.
	processor time.Duration
	// account and memory are those of the operator.
	account account
	memory  memory
}

// migrate tells the operator to move the workloads, and measures from there until it says that it has.
func (m *mesh) migrate(b *testing.B) trip {
	b.Helper()
	events, err := m.Watch(b.Context(), &v1.IstioList{})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	before := m.pages(b)
	memory := watchMemory(b.Context(), m.operator.Pid())

	processor := processorTimeOf(b, m.operator.Pid())
	began := time.Now()
	m.change(b, `{"spec":{"updateStrategy":{"workloadMigration":{"strategy":"Batched"}}}}`)
	var status *v1.WorkloadMigrationStatus
	deadline := time.After(20 * time.Minute)
	for status == nil || status.CompletionTime == nil {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				b.Fatal("the watch of the Istio ended")
			}
			if istio, ok := event.Object.(*v1.Istio); ok {
				status = istio.Status.WorkloadMigration
			}
		case <-deadline:
			b.Fatalf("the migration did not end: %+v", status)
		}
	}
	done := trip{took: time.Since(began), processor: processorTimeOf(b, m.operator.Pid()) - processor}
	if done.memory, err = memory(); err != nil {
		b.Fatal(err)
	}
	if status.State != v1.WorkloadMigrationStateCompleted || int(status.MigratedWorkloads) != m.extent.deployments {
		b.Fatalf("the migration ended with %+v", status)
	}
	m.quiet(b)
	done.account = m.pages(b).since(before, requests{{"PATCH", "istios"}: 1})
	m.whereabouts(b)
	return done
}

// migrateBare does the same while no operator runs.
func (m *mesh) migrateBare(b *testing.B) trip {
	b.Helper()
	m.stop(b)
	client := newBare(b, m)
	defer client.stop()
	processor := processorTimeOf(b, os.Getpid())
	took, err := client.migrate(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	done := trip{took: took, processor: processorTimeOf(b, os.Getpid()) - processor}
	m.whereabouts(b)
	return done
}
