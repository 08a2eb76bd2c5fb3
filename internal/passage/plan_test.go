package passage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjectString(t *testing.T) {
	cases := map[string]struct {
		object Object
		want   string
	}{
		"namespaced":         {Object{Kind: "Deployment", Namespace: "shop", Name: "cart"}, "Deployment shop/cart"},
		"cluster-scoped":     {Object{Kind: "Namespace", Name: "shop"}, "Namespace shop"},
		"in another cluster": {Object{Cluster: "eu-west", Kind: "Deployment", Namespace: "shop", Name: "cart"}, "Deployment shop/cart in eu-west"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.object.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		plan Plan
		want bool
	}{
		"no steps":           {planOf(), false},
		"settled":            {planOf(deploys("a", done(1, 10)), deploys("b", failed(1, 10)), deploys("c", state(Skipped)), deploys("d", state(Later))), false},
		"pending":            {planOf(deploys("a", done(1, 10)), deploys("b")), true},
		"pending, not told":  {planOf(deploys("a", state(""))), true},
		"running":            {planOf(deploys("a", running(1))), true},
		"of any kind":        {planOf([]Step{relabel("shop")}), true},
		"held, but not done": {Plan{Hold: Hold("Paused", "paused"), Steps: deploys("a")}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.plan.HasChanges(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	plan := planOf(
		[]Step{relabel("shop", state(Done)), relabel("pay", state(Failed))},
		deploys("a b c"), deploys("d", state("")), deploys("e f", running(1)),
		deploys("g", done(1, 10)), deploys("h", done(0, 0)), deploys("i", failed(1, 10)), deploys("j k", state(Skipped)), deploys("l", state(Later)),
	)
	want := Counts{Total: 9, Pending: 4, Running: 2, Done: 2, Failed: 1, Skipped: 2, Later: 1}
	if diff := cmp.Diff(want, plan.Counts()); diff != "" {
		t.Errorf("of what moves (-want +got):\n%s", diff)
	}

	plan.Moves = nil
	want = Counts{Total: 11, Pending: 4, Running: 2, Done: 3, Failed: 2, Skipped: 2, Later: 1}
	if diff := cmp.Diff(want, plan.Counts()); diff != "" {
		t.Errorf("of everything (-want +got):\n%s", diff)
	}
}

func TestFailuresAreMostRecentFirst(t *testing.T) {
	plan := planOf(deploys("a", failed(1, 10)), deploys("b", done(1, 99)), deploys("c", failed(2, 50)),
		deploys("d", failed(2, 50)), deploys("e", failed(2, 30)))
	if got, want := inShort(plan.Failures()), "c d e a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
