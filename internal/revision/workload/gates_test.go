package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/injection"
)

var (
	deletedIstio = with(func(i *v1.Istio) { i.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) })
	inPlaceIstio = with(func(i *v1.Istio) { i.Spec.UpdateStrategy.Type = v1.UpdateStrategyInPlace })
	noSuchPolicy = batched(func(b *v1.BatchedMigrationConfig) { b.FailurePolicy = "Retry" })
	// elsewhere is a Deployment that is on its way to a revision that was the target before.
	elsewhere = func(name string) part {
		return deploy(name, halfway, moved(0, 1, func(m *Mark) { m.Target = old }))
	}
)

func notReady(o *Observed) {
	for i := range o.Revisions {
		if o.Revisions[i].Name == target {
			o.Revisions[i].Status.Conditions = nil
			o.Target = o.TargetOf(&o.Revisions[i])
		}
	}
}

// usesTag is a namespace that uses the tag prod.
var usesTag = namespace("tagged", rev("prod"))

func holdOf(o Observed) *passage.Reason { return Plan(o, at(60)).Hold }

// TestGates has the gates in their order. Each row holds all that the rows after it are about, too, so that nobody is told
// to raise maxVersion for an Istio that is being deleted.
func TestGates(t *testing.T) {
	gates := []struct {
		name    string
		closes  part
		code    v1.Reason
		message string
	}{
		{"the Istio is being deleted", deletedIstio, v1.ReasonBeingDeleted, "Istio default is being deleted; nothing more is moved"},
		{
			"the strategy is not set", switchedOff, v1.ReasonMigrationDisabled,
			"workloads are not moved: spec.updateStrategy.workloadMigration.strategy is not set; Batched moves workloads",
		},
		{
			"there is only ever one revision", inPlaceIstio, v1.ReasonNotRevisionBased,
			"workloads move between revisions, and spec.updateStrategy.type is not RevisionBased",
		},
		{
			"settings that make no sense", noSuchPolicy, v1.ReasonInvalidSettings,
			`spec.updateStrategy: workloadMigration.batched.failurePolicy: "Retry" is not known`,
		},
		{
			"paused", pausedIstio, v1.ReasonPaused,
			"paused by annotation fairlead.dev/paused; resume with `fairlead resume istio default`",
		},
		{
			"the version is above the bound", maxVersion("1.25.999"), v1.ReasonMaxVersionExceeded,
			"v1.26.0 is above batched.maxVersion 1.25.999; raise it, and workloads move to default-v1-26-0",
		},
		{
			"the revision is not ready", notReady, v1.ReasonRevisionNotReady,
			"IstioRevision default-v1-26-0 is not ready; workloads move when it is",
		},
		{
			"the injector fails", checked(target, injection.Fails, "refused: boom"), v1.ReasonInjectionFailed,
			"IstioRevision default-v1-26-0 does not inject pods with label istio.io/rev=default-v1-26-0: refused: boom; no workload moves until it " +
				"does: check its istiod, and the Service and the caBundle of the webhook that selects such pods",
		},
	}
	for i, gate := range gates {
		t.Run(gate.name, func(t *testing.T) {
			var closed []part
			for _, g := range gates[i:] {
				closed = append(closed, g.closes)
			}
			want := &passage.Reason{Code: passage.Code(gate.code), Message: gate.message}
			if diff := cmp.Diff(want, holdOf(observed(closed...))); diff != "" {
				t.Errorf("with all that follow (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, holdOf(observed(gate.closes))); diff != "" {
				t.Errorf("alone (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("open", func(t *testing.T) {
		if hold := holdOf(observed()); hold != nil {
			t.Errorf("held: %s", hold)
		}
	})
}

func TestGateDetails(t *testing.T) {
	cases := map[string]struct {
		parts []part
		want  string // empty: open
	}{
		"no migration in the spec at all": {
			[]part{with(func(i *v1.Istio) { i.Spec.UpdateStrategy.WorkloadMigration = nil })},
			"MigrationDisabled: workloads are not moved: spec.updateStrategy.workloadMigration.strategy is not set; Batched moves workloads",
		},
		"a strategy that nobody knows is not taken for none": {
			[]part{with(func(i *v1.Istio) { i.Spec.UpdateStrategy.WorkloadMigration.Strategy = "Canary" })},
			`InvalidSettings: spec.updateStrategy: workloadMigration.strategy "Canary" is not known`,
		},
		"paused by another word than true":         {[]part{annotatedIstio(fairlead.AnnotationPaused, "yes")}, ""},
		"a tag that has not moved holds no others": {[]part{usesTag, tag("prod", "Istio/default", old)}, ""},
		"some are on their way elsewhere":          {[]part{elsewhere("shop/cart"), elsewhere("shop/pay")}, ""},
		"one that has arrived elsewhere is not waited for": {
			[]part{deploy("shop/cart", runs(old, 2), since("NewReplicaSetAvailable", 30), moved(0, 1, func(m *Mark) { m.Target = old }))}, "",
		},
		"nor one that had its time": {
			[]part{deploy("shop/cart", halfway, moved(-500, 1, func(m *Mark) { m.Target = old }))}, "",
		},
		"nor one of another Istio": {
			[]part{deploy("shop/cart", halfway, moved(0, 1, func(m *Mark) { m.Istio, m.Target = "other", foreign24 }))}, "",
		},
		"nor one that is being deleted": {
			[]part{deploy("shop/cart", halfway, beingDeleted, moved(0, 1, func(m *Mark) { m.Target = old }))}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if hold := holdOf(observed(tc.parts...)); hold != nil {
				got = hold.String()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestVersionComparisonLogic(t *testing.T) {
	type row struct{ from, to, bound string }
	check := func(t *testing.T, rows []row, want bool) {
		t.Helper()
		for _, row := range rows {
			o := observed(deploy("shop/cart", runs(old, 2)), namespace("shop", rev(old)), func(o *Observed) { o.Target.Version = row.to })
			if row.bound != "" {
				maxVersion(row.bound)(&o)
			}
			// What workloads run already plays no part.
			o.Revisions[1].Spec.Version = row.from
			d := decide(o, epoch)
			if triggered := len(d.Start) > 0; triggered != want {
				t.Errorf("%s to %s with maxVersion %q: triggered %t, want %t (hold: %v)", row.from, row.to, row.bound, triggered, want, d.Plan.Hold)
			}
			if hold := d.Plan.Hold; !want && (hold == nil || v1.Reason(hold.Code) != v1.ReasonMaxVersionExceeded) {
				t.Errorf("%s to %s with maxVersion %q: held by %v", row.from, row.to, row.bound, hold)
			}
		}
	}
	t.Run("Semantic version parsing and comparison", func(t *testing.T) {
		check(t, []row{
			{"v1.24.0", "v1.26.0", "1.26.0"},
			{"v1.24.0", "v1.26.0", "v1.26.0"},
			{"v1.24.0", "v1.26.0-rc.1", "1.26.0"},
			{"v1.24.0", "v1.26.0-rc.1", "1.26.0-rc.1"},
			{"v1.24.0", "v1.26.0-rc.2", "1.26.0-rc.10"},
			{"v1.24.0", "v1.25.999", "1.26.0-alpha"},
			{"v1.24.0", "v1.9.9", "1.24.0"},
			{"v1.26.0", "v1.24.0", "1.24.0"},
		}, true)
		check(t, []row{
			{"v1.24.0", "v1.26.1", "1.26.0"},
			{"v1.24.0", "v1.26.1-alpha", "1.26.0"},
			{"v1.24.0", "v1.26.0", "1.26.0-rc.1"},
			{"v1.24.0", "v1.26.0-rc.10", "1.26.0-rc.2"},
			{"v1.24.0", "v1.10.0", "1.9.999"},
			{"v1.24.0", "v2.0.0", "1.999.0"},
			{"v1.26.0", "v1.24.0", "1.23.0"},
		}, false)
	})
	t.Run("Version boundary checks for all scenarios in decision matrix", func(t *testing.T) {
		for _, scenario := range []struct {
			row
			triggered bool
		}{
			{row{"1.24.1", "1.24.2", ""}, true},
			{row{"1.24.1", "1.25.0", ""}, true},
			{row{"1.24.1", "2.0.0", ""}, true},
			{row{"1.24.1", "1.24.5", "1.24.999"}, true},
			{row{"1.24.1", "1.25.0", "1.24.999"}, false},
			{row{"1.24.1", "1.26.0", "1.25.0"}, false},
			{row{"1.24.1", "1.25.3", "1.26.0"}, true},
		} {
			check(t, []row{scenario.row}, scenario.triggered)
		}
	})
	t.Run("maxVersion unset allows all versions", func(t *testing.T) {
		check(t, []row{{"v1.24.0", "v1.24.1", ""}, {"v1.24.0", "v99.0.0", ""}, {"v1.24.0", "v1.27.0-alpha.3", ""}, {"v1.24.0", "nightly", ""}}, true)
	})
	t.Run(`maxVersion="1.24.999" blocks 1.25.0 but allows 1.24.x`, func(t *testing.T) {
		check(t, []row{{"v1.24.0", "v1.24.0", "1.24.999"}, {"v1.24.0", "v1.24.1", "1.24.999"}, {"v1.24.0", "v1.24.999", "1.24.999"}}, true)
		check(t, []row{{"v1.24.0", "v1.25.0", "1.24.999"}, {"v1.24.0", "v1.24.1000", "1.24.999"}}, false)
	})
	t.Run("Handle malformed version strings gracefully", func(t *testing.T) {
		// Nobody can tell whether such a version is within a bound, so it is taken not to be.
		check(t, []row{{"v1.24.0", "nightly", "1.26.0"}, {"v1.24.0", "v1.26", "1.26.0"}, {"v1.24.0", "1.26.0.1", "1.26.0"}}, false)
		want := passage.Because(v1.ReasonMaxVersionExceeded,
			`cannot compare version "nightly" with batched.maxVersion 1.26.0: invalid semantic version`)
		got := holdOf(observed(maxVersion("1.26.0"), func(o *Observed) { o.Target.Version = "nightly" }))
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("malformed version (-want +got):\n%s", diff)
		}
		for _, bound := range []string{"latest", "1.26", "<=1.26.0", ""} {
			hold := holdOf(observed(maxVersion(bound)))
			if hold == nil || v1.Reason(hold.Code) != v1.ReasonInvalidSettings {
				t.Errorf("maxVersion %q: held by %v", bound, hold)
			}
		}
	})
}
