package scale_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// What taking over may cost.
const (
	maxTakeoverRatio  = 6
	maxHubWrites      = 5
	maxReads          = 1.1
	maxEvents         = 3
	maxAdoptionMemory = 200
	adoptionRounds    = 3
	adoptionNamespace = "shop"
	annotationAborted = "fairlead.dev/aborted"
	adoptionParallel  = 8
)

// BenchmarkTakeOver takes a thousand Deployments over that run in one cluster already.
func BenchmarkTakeOver(b *testing.B) {
	const count = 1000
	f := newFleet(b, 1, "cluster")
	member := f.members[0]
	member.stockUp(b, 0, count)
	f.stockUp(b, 0, count)
	member.running(b)
	before := member.state(b)
	for b.Loop() {
		var bare, taken []attempt
		for round := range adoptionRounds {
			bare = append(bare, f.measure(b, func() time.Duration { return f.applyBare(b, count, round) }))
			stop := watchMemory(b.Context(), f.operator.Pid())
			earlier := f.books(b)
			taken = append(taken, f.measure(b, func() time.Duration { return f.takeOver(b, count) }))
			now := f.books(b)
			memory, err := stop()
			if err != nil {
				b.Fatal(err)
			}
			f.judge(b, count, round, bare[round], taken[round], earlier, now, memory)
			if after := member.state(b); after != before {
				b.Errorf("round %d: the generation of a Deployment has moved, or a pod has changed", round+1)
			}
			fmt.Printf("given back in %.1f s\n", f.giveBack(b).Seconds())
		}
		took := func(a attempt) time.Duration { return a.took }
		ratio := medianOf(each(taken, took)).Seconds() / medianOf(each(bare, took)).Seconds()
		fmt.Printf("median of %d rounds: %.2f times as long as a bare client (limit %d)\n", adoptionRounds, ratio, maxTakeoverRatio)
		b.ReportMetric(ratio, "x-bare")
		if ratio > maxTakeoverRatio {
			b.Errorf("taking over takes %.2f times as long as applying", ratio)
		}
	}
}

func medianOf(all []time.Duration) time.Duration {
	var values []float64
	for _, d := range all {
		values = append(values, d.Seconds())
	}
	return time.Duration(median(values) * float64(time.Second))
}

// judge prints one round, and what is wrong with it.
func (f *fleet) judge(b *testing.B, count, round int, bare, taken attempt, earlier, now books, memory memory) {
	b.Helper()
	objects := float64(count)
	own := now.hub.since(earlier.hub).writes()
	written := own.of("resourcebindings", "clusterresourcebindings", "works", "secrets") / objects
	rows := [][]string{
		{"", "limit", ""},
		{"time, bare client", "", fmt.Sprintf("%.1f s", bare.took.Seconds())},
		{"time, Fairlead", "", fmt.Sprintf("%.1f s", taken.took.Seconds())},
		{"ratio", fmt.Sprint(maxTakeoverRatio), fmt.Sprintf("%.2f", taken.took.Seconds()/bare.took.Seconds())},
		{"processor time per object, bare client", "", bare.used.of(objects)},
		{"processor time per object, Fairlead", "", taken.used.of(objects)},
		{"ratio of processor times", "", fmt.Sprintf("%.2f", taken.used.total().Seconds()/bare.used.total().Seconds())},
		{"writes to the hub, per object", fmt.Sprint(maxHubWrites), fmt.Sprintf("%.3f", written)},
		{"requests to the hub, per object", "", now.hub.since(earlier.hub).per(objects)},
		{"writes of policies, in all", "", fmt.Sprint(own.of("propagationpolicies"))},
		{"events", fmt.Sprint(maxEvents), fmt.Sprint(now.events - earlier.events)},
		{"memory", fmt.Sprintf("%d MiB", maxAdoptionMemory), memory.String()},
	}
	if written > maxHubWrites {
		b.Errorf("an object costs %.3f writes to the hub", written)
	}
	for i, m := range f.members {
		requested := now.members[i].since(earlier.members[i])
		each, read := requested.writes().of("deployments")/objects, requested[asked{"GET", "deployments"}]/objects
		rows = append(rows, []string{"writes to " + m.name + ", per object", "1", fmt.Sprintf("%.3f", each)},
			[]string{"reads of " + m.name + ", per object", fmt.Sprint(maxReads), fmt.Sprintf("%.3f", read)},
			[]string{"requests to " + m.name + ", per object", "", requested.per(objects)})
		if each != 1 {
			b.Errorf("an object costs %.3f writes to %s", each, m.name)
		}
		if read > maxReads {
			b.Errorf("an object costs %.3f reads of %s", read, m.name)
		}
	}
	if extra := now.events - earlier.events; extra > maxEvents {
		b.Errorf("there were %d events", extra)
	}
	if memory.peak > maxAdoptionMemory {
		b.Errorf("the operator takes %.0f MiB", memory.peak)
	}
	printRows(fmt.Sprintf("%d Deployments that run in %d cluster(s) are taken over, round %d.", count, len(f.members), round+1), rows...)
}

// BenchmarkTakeOverEverywhere takes over two hundred Deployments in each of five clusters, then a thousand, and starts anew.
func BenchmarkTakeOverEverywhere(b *testing.B) {
	const count, most = 200, 1000
	f := newFleet(b, 5, "hub")
	f.stockUp(b, 0, count)
	for _, m := range f.members {
		m.stockUp(b, 0, count)
	}
	for b.Loop() {
		bare := f.applyBare(b, count, 0)
		stop := watchMemory(b.Context(), f.operator.Pid())
		earlier := f.books(b)
		taken := f.takeOver(b, count)
		now := f.books(b)
		memory, err := stop()
		if err != nil {
			b.Fatal(err)
		}
		// A binding, five Works, and the status of each.
		own := now.hub.since(earlier.hub).writes()
		printRows(fmt.Sprintf("%d Deployments are taken over in each of %d clusters.", count, len(f.members)),
			[]string{"", ""},
			[]string{"time, bare client", fmt.Sprintf("%.1f s", bare.Seconds())},
			[]string{"time, Fairlead", fmt.Sprintf("%.1f s", taken.Seconds())},
			[]string{"ratio", fmt.Sprintf("%.2f", taken.Seconds()/bare.Seconds())},
			[]string{"writes to the hub, per object in a cluster", fmt.Sprintf("%.3f", own.of("resourcebindings", "works")/float64(count*len(f.members)))},
			[]string{"memory", memory.String()})
		f.stockUp(b, count, most)
		f.applied(b, most)
		f.startOver(b, most)
	}
}

// startOver has a new operator look at everything, which is as it should be.
func (f *fleet) startOver(b *testing.B, count int) {
	b.Helper()
	f.operator.Kill()
	earlier := f.books(b)
	began := time.Now()
	f.start(b)
	stop := watchMemory(b.Context(), f.operator.Pid())
	f.looked(b, count*len(f.members))
	took := time.Since(began)
	now := f.books(b)
	memory, err := stop()
	if err != nil {
		b.Fatal(err)
	}
	hub := now.hub.since(earlier.hub).writes().of("resourcebindings", "works", "propagationpolicies", "secrets")
	rows := [][]string{
		{"", "limit", ""},
		{"all looked at after", "", fmt.Sprintf("%.1f s", took.Seconds())},
		{"writes to the hub", "0", fmt.Sprint(hub)},
		{"memory", fmt.Sprintf("%d MiB", maxAdoptionMemory), memory.String()},
	}
	for i, m := range f.members {
		written := now.members[i].since(earlier.members[i]).writes().total()
		rows = append(rows, []string{"writes to " + m.name, "0", fmt.Sprint(written)})
		if written > 0 {
			b.Errorf("with nothing to do, there were %.0f writes to %s", written, m.name)
		}
	}
	printRows(fmt.Sprintf("An operator starts over %d Deployments in %d clusters with nothing to do.", count, len(f.members)), rows...)
	if hub > 0 {
		b.Errorf("with nothing to do, there were %.0f writes to the hub", hub)
	}
	if memory.peak > maxAdoptionMemory {
		b.Errorf("the operator takes %.0f MiB", memory.peak)
	}
}

// looked waits until the operator has looked at so many Works, and has gone quiet.
func (f *fleet) looked(b *testing.B, works int) {
	b.Helper()
	last, quiet := -1.0, 0
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		p, err := operatorPage(ctx, f.address)
		if err != nil {
			return err
		}
		done := p.sum("controller_runtime_reconcile_total", map[string]string{"controller": "adoption-work"})
		if done == last {
			quiet++
		} else {
			last, quiet = done, 0
		}
		if done < float64(works) || quiet < 20 {
			return fmt.Errorf("it has looked at %.0f of %d", done, works)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
