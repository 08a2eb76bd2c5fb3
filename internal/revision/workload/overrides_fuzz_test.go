package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// FuzzOverrides: whatever the annotations of a workload say, it gets no more time than any may have, no more move at once than may, its
// neighbour moves as if it had none, and what is said of them fits a status.
func FuzzOverrides(f *testing.F) {
	f.Add("true", "1", "10m")
	f.Add("", "-100", "9999999h")
	f.Add("maybe", "99999999999999999999", "-1s")
	f.Add("0", "+7", "1e9s")
	f.Add("\x1b[2J", " 1", "∞")
	f.Fuzz(func(t *testing.T, skip, batch, timeout string) {
		notes := []option{annotated(v1.AnnotationSkipMigration, skip), annotated(v1.AnnotationMigrationBatch, batch), annotated(v1.AnnotationReadinessTimeout, timeout)}
		if skip == "" {
			notes = notes[1:]
		}
		o := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", append(notes, runs(old, 2))...), deploy("shop/pay", runs(old, 2)))
		w, limits := o.Inventory.Workloads[0], o.timeouts()
		asked, err := overridesOf(w)
		if err == nil && (asked.priority < v1.MinMigrationBatch || asked.priority > v1.MaxMigrationBatch || asked.timeout < 0) {
			t.Errorf("asked is %+v", asked)
		}
		if got := limits.of(w); got <= 0 || got > max(limits.limit, limits.usual) {
			t.Errorf("the timeout is %s, by %q", got, timeout)
		}
		d := decide(o, at(60))
		if len(d.Start) > 1 {
			t.Errorf("starts %d in batches of one", len(d.Start))
		}
		var pay *passage.Step
		for i := range d.Plan.Steps {
			s := &d.Plan.Steps[i]
			if s.Object.Name == "pay" {
				pay = s
			}
			if len(s.Reason.Message) > 1024 {
				t.Errorf("a reason has %d bytes", len(s.Reason.Message))
			}
		}
		if pay == nil || pay.State == passage.Failed || pay.State == passage.Skipped {
			t.Errorf("with %q, %q, %q the neighbour is %+v", skip, batch, timeout, pay)
		}
		if diff := cmp.Diff(d.Plan, decide(o, at(60)).Plan); diff != "" {
			t.Errorf("planned again (-first +second):\n%s", diff)
		}
		statusOf(o, d, at(60))
		migratedConditionOf(o, d.Decision)
	})
}
