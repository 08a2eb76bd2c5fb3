package passage

import (
	"encoding/json"
	"testing"
	"time"
)

func TestHeadline(t *testing.T) {
	paused := Hold("Paused", "paused by fairlead.dev/paused")
	cases := map[string]struct {
		plan     Plan
		hold     *Reason
		batching Batching
		want     string
	}{
		"nothing to do":   {plan: planOf(), want: "nothing to do"},
		"could not plan":  {plan: planOf(), hold: paused, want: "paused by fairlead.dev/paused"},
		"only namespaces": {plan: planOf([]Step{relabel("shop")}), want: "InProgress"},
		"all skipped":     {plan: planOf(deploys("a b", state(Skipped))), want: "2 skipped"},
		"in progress": {
			plan:     planOf(deploys("a", done(1, 5)), deploys("b", failed(1, 5)), deploys("c", running(1)), deploys("d"), deploys("e", state(Skipped))),
			batching: Batching{Size: 3},
			want:     "1 of 4 done, 1 running, 1 failed, 1 skipped, batch 1 of 2",
		},
		"delaying": {
			plan:     planOf(deploys("a", done(1, 5)), deploys("b")),
			batching: Batching{Delay: time.Minute},
			want:     "1 of 2 done, batch 1 of 2: batch 2 follows at 2025-10-21T10:31:05Z, 1m0s after the last step settled",
		},
		"held": {
			plan: planOf(deploys("a b c")), hold: paused, batching: Batching{Size: 3},
			want: "0 of 3 done, 1 batch: paused by fairlead.dev/paused",
		},
		"stopped": {
			plan:     planOf(deploys("a", failed(1, 5)), deploys("b c")),
			batching: Batching{FailFast: true},
			want:     "0 of 3 done, 1 failed, batch 1 of 3: Deployment shop/a failed: nothing more starts until that is retried, 2 left",
		},
		"completed": {plan: planOf(deploys("a", done(1, 5))), want: "1 of 1 done, batch 1 of 1"},
		"a report is no object": {
			plan: planOf(deploys("a b", done(1, 5)), []Step{uncounted(Running, "not yet reported")}), batching: Batching{Size: 2},
			want: "2 of 2 done, batch 1 of 1",
		},
		"only a report": {plan: planOf([]Step{uncounted(Running, "not yet reported")}), want: "not yet reported"},
		"a failure that is no object": {
			plan: planOf(deploys("a b", done(1, 5)), []Step{uncounted(Done, "fine"), uncounted(Failed, "no such cluster")}), batching: Batching{Size: 2},
			want: "2 of 2 done, Istio default failed, batch 1 of 1",
		},
		"only a failure that is no object": {plan: planOf([]Step{uncounted(Done, "fine"), uncounted(Failed, "no such cluster")}), want: "no such cluster"},
		"with failures":                    {plan: planOf(deploys("a", done(1, 5)), deploys("b", failed(2, 5))), want: "1 of 2 done, 1 failed, batch 2 of 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.plan.Hold = tc.hold
			got := NewView(Next(tc.plan, tc.batching, at(10)), at(10)).Headline
			if got != tc.want {
				t.Errorf("\n got %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	cases := map[string]struct {
		decision Decision
		want     bool
	}{
		"in progress":             {Decision{Outcome: InProgress}, false},
		"delaying":                {Decision{Outcome: Delaying}, false},
		"held":                    {Decision{Outcome: Held}, false},
		"completed":               {Decision{Outcome: Completed}, true},
		"completed with failures": {Decision{Outcome: OutcomeFailed}, true},
		"stopped, some still run": {Decision{Outcome: Stopped, Wait: deploys("a", running(1))}, false},
		"stopped":                 {Decision{Outcome: Stopped}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NewView(tc.decision, epoch).Settled; got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestStoryAsJSON keeps what scripts read from changing unnoticed.
func TestStoryAsJSON(t *testing.T) {
	plan := planOf([]Step{relabel("shop", state(Done))},
		deploys("cart", done(1, 20)), deploys("pay", failed(1, 25)), deploys("web", priority(2)),
		deploys("db", state(Skipped), func(s *Step) { s.Reason = Because("SkipMigration", "skipped by annotation") }))
	now := at(40)
	held := plan
	held.Hold = Hold("Paused", "paused by fairlead.dev/paused")

	for file, shown := range map[string]any{
		"view.json": NewView(Next(plan, Batching{Size: 2, Delay: 30 * time.Second}, now), now),
		"plan.json": Next(held, Batching{Size: 2}, now).Plan,
	} {
		t.Run(file, func(t *testing.T) {
			got, err := json.MarshalIndent(shown, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file, string(got)+"\n")
		})
	}
}

func TestListsInJSONAreNeverNull(t *testing.T) {
	got, err := json.Marshal(NewView(Next(Plan{}, Batching{}, epoch), epoch))
	if err != nil {
		t.Fatal(err)
	}
	var view struct{ Steps, Failures []Step }
	if err := json.Unmarshal(got, &view); err != nil {
		t.Fatal(err)
	}
	if view.Steps == nil || view.Failures == nil {
		t.Errorf("null in %s", got)
	}
}

func uncounted(state State, message string) Step {
	return Step{Object: planOf().Subject, Action: "report", State: state, Uncounted: true, Reason: Because("Why", "%s", message)}
}
