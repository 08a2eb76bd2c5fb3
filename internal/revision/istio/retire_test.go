package istio

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

func TestRetirement(t *testing.T) {
	const old, active = "default-v1-24-0", "default-v1-26-0"
	istio := func() istioBuilder { return makeIstio("default").revisionBased().version("v1.26.0").active(active) }
	before := func() revisionBuilder { return makeRevision(old, "v1.24.0").of("default").ready() }
	after := func() revisionBuilder { return makeRevision(active, "v1.26.0").of("default") }
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

	cases := map[string]struct {
		in   Observed
		at   time.Time
		want []string
		next time.Time
	}{
		"when it became inactive is written down first": {
			in: observed(istio(), before().unused(), after().ready()),
			at: epoch,
			want: []string{
				`Pending retire IstioRevision default-v1-24-0 ""->"" Inactive`,
				`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`,
			},
			next: at(31),
		},
		"in use": {
			in:   observed(istio(), before().inactive(epoch), after().ready()).used(old),
			at:   at(3600),
			want: []string{`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`},
		},
		"used again, which its condition does not tell yet": {
			in:   observed(istio(), before().inactive(epoch).unused(), after().ready()).used(old),
			at:   at(3600),
			want: []string{`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`},
		},
		"not used any more, which its condition does not tell yet": {
			in: observed(istio(), before().inactive(epoch).
				condition(v1.ConditionInUse, "True", v1.ReasonReferencedByWorkloads, ""), after().ready()),
			at:   at(3600),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`},
		},
		"the grace period counts from when it became inactive": {
			in:   observed(istio(), before().inactive(at(10)).unusedSince(at(0)), after().ready()),
			at:   at(40),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`},
			next: at(41),
		},
		"the grace period counts from when it became unused": {
			in:   observed(istio(), before().inactive(at(0)).unusedSince(at(10)), after().ready()),
			at:   at(40),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`},
			next: at(41),
		},
		"the grace period is over": {
			in:   observed(istio(), before().inactive(at(0)).unusedSince(at(10)), after().ready()),
			at:   at(41),
			want: []string{`Pending prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`},
		},
		"no grace period": {
			in:   observed(istio().grace(0), before().inactive(at(0)).unusedSince(at(10)), after().ready()),
			at:   at(10),
			want: []string{`Pending prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`},
		},
		"nobody can know whether it is in use": {
			in: observed(istio(), before().inactive(epoch).unused(), after().ready()).
				usedBy(old, usage.Usage{Forbidden: []string{"pods"}}),
			at:   at(3600),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" UsageCheckFailed`},
		},
		"never before the active one is ready": {
			in:   observed(istio(), before().inactive(epoch).unused(), after()),
			at:   at(3600),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`},
		},
		"being removed": {
			in:   observed(istio(), before().inactive(epoch).unused().deleting(), after().ready()),
			at:   at(3600),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" BeingDeleted`},
		},
		"removed, and kept by others": {
			in:   observed(istio(), before().inactive(epoch).unused().deleting().finalizers("example.com/backup"), after().ready()),
			at:   at(3600),
			want: []string{`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" BeingDeleted`},
		},
		"back to the old one: it is active again, and the other retires": {
			in: observed(istio().version("v1.24.0"), before().inactive(epoch), after().ready().unused()),
			at: at(5),
			want: []string{
				`Pending update IstioRevision default-v1-24-0 "v1.24.0"->"v1.24.0" RevisionDiffers`,
				`Pending retire IstioRevision default-v1-26-0 ""->"" Inactive`,
				`Running prune IstioRevision default-v1-26-0 "v1.26.0"->"" Inactive`,
			},
			next: at(36),
		},
		"from in place to revision based": {
			in: observed(istio(), makeRevision("default", "v1.24.0").of("default").ready().inactive(epoch), after().ready()).
				used("default"),
			at:   at(3600),
			want: []string{`Later prune IstioRevision default "v1.24.0"->"" InUse`},
		},
		"revisions of others are not ours to prune": {
			in: observed(istio(), makeRevision(old, "v1.24.0").of("other").inactive(epoch).unused(), after().ready()),
			at: at(3600),
		},
		"a tag that follows moves by itself": {
			in: observed(istio(), before().inactive(epoch), after()).used(old).tagged("prod", old).tagged("there", active),
			at: at(5),
			want: []string{
				`Running move IstioRevisionTag prod "default-v1-24-0"->"default-v1-26-0" FollowsIstio`,
				`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`,
			},
		},
		"a tag that follows to a revision that is not active yet": {
			in: observed(istio().active(old), before()).used(old).tagged("prod", old).tagged("new", "").tagged("paused", old).pausedTag("paused").
				tagged("taken", "").refusedTag("taken", v1.ReasonNameAlreadyExists),
			at: at(5),
			want: []string{
				`Pending create IstioRevision default-v1-26-0 ""->"v1.26.0" RevisionMissing`,
				`Pending move IstioRevisionTag prod "default-v1-24-0"->"default-v1-26-0" FollowsIstio`,
				`Pending move IstioRevisionTag new ""->"default-v1-26-0" FollowsIstio`,
				`Running move IstioRevisionTag paused "default-v1-24-0"->"default-v1-26-0" Paused`,
				`Running move IstioRevisionTag taken ""->"default-v1-26-0" NameAlreadyExists`,
				`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`,
			},
		},
		"a tag that moves keeps nothing": {
			in: observed(istio(), before().inactive(epoch), after()).tagged("prod", old).usedBy(old, usage.Usage{Tags: 1}),
			at: at(5),
			want: []string{
				`Running move IstioRevisionTag prod "default-v1-24-0"->"default-v1-26-0" FollowsIstio`,
				`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`,
			},
			next: at(31),
		},
		"a tag that is paused moves when somebody resumes it, and keeps what it points to": {
			in: observed(istio(), before().inactive(epoch), after().ready()).tagged("prod", old).pausedTag("prod").
				usedBy(old, usage.Usage{Tags: 1}),
			at: at(3600),
			want: []string{
				`Running move IstioRevisionTag prod "default-v1-24-0"->"default-v1-26-0" Paused`,
				`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`,
			},
		},
		"a tag that stays keeps it": {
			in:   observed(istio(), before().inactive(epoch), after().ready()).usedBy(old, usage.Usage{Tags: 1}),
			at:   at(3600),
			want: []string{`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`},
		},
		"a name that is taken retires nobody": {
			in: observed(istio().active(old), before(), makeRevision(active, "v1.26.0").of("other")),
			at: at(5),
			want: []string{
				`Failed create IstioRevision default-v1-26-0 "v1.26.0"->"v1.26.0" NameAlreadyExists`,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Plan(c.in, c.at)
			var got []string
			for i, line := range inShort(plan) {
				if plan.Steps[i].Action != ActionRun {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for _, s := range startable(plan, c.at) {
				if s.Action == ActionMove {
					t.Errorf("the controller of Istios would move %s", s.Object)
				}
			}
			if next, _ := nextPruneTime(c.in, plan, c.at); !next.Equal(c.next) {
				t.Errorf("looks again at %v, want %v", next, c.next)
			}
		})
	}
}

func TestPruningSaysWhenAndWhy(t *testing.T) {
	in := observed(makeIstio("default").revisionBased().version("v1.26.0"),
		makeRevision("default-v1-24-0", "v1.24.0").of("default").ready().inactive(epoch).unused(),
		makeRevision("default-v1-25-0", "v1.25.0").of("default").ready().inactive(epoch),
		makeRevision("default-v1-25-1", "v1.25.1").of("default").deleting().finalizers("example.com/backup"),
		makeRevision("default-v1-26-0", "v1.26.0").of("default").ready()).used("default-v1-25-0")
	var got []string
	for _, s := range Plan(in, epoch.Add(time.Second)).Steps {
		if s.Action == ActionPrune {
			got = append(got, s.Reason.Message)
		}
	}
	want := []string{
		"unused since 2030-01-01T12:00:00Z; deleted at 2030-01-01T12:00:31Z",
		"kept while in use by 1 pod: Pod shop/cart",
		"uninstalled; waiting for finalizers of other controllers: example.com/backup",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if plan := Plan(in, epoch.Add(time.Hour)); passage.Next(plan, passage.Batching{}, epoch.Add(time.Hour)).Start[0].Object.Name != "default-v1-24-0" {
		t.Error("it does not start when it is due")
	}
}
