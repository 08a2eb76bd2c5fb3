package rollout

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// TestPlanOfCommands are plans of what only commands observe, and of what they show although nothing is left to do.
func TestPlanOfCommands(t *testing.T) {
	v1 := func() maker { return makeMaterialize() }
	secured := func() maker { m := v1(); m.Spec.ConsoleExternalCertificateSpec = &v1alpha2.CertificateSpec{}; return m }
	serving := func(b maker) scene { return seeing(t, b.serving(t, 1, v1())).generation(1, v1()) }
	cases := map[string]struct {
		scene scene
		in    func(*Observed)
		want  []string
	}{
		"nothing is left": {scene: serving(v1()).complete(), want: lines("  Done    complete")},
		"nothing is left, and the hash is unknown": {
			scene: serving(v1()).complete(), in: func(o *Observed) { o.UnknownHash = errors.New("unknown") },
			want: lines("held: UnknownHashVersion", "  Done    complete"),
		},
		"a Certificate": {
			scene: serving(secured()).leaves(v1().serving(t, 1, v1())),
			want:  lines("> Pending ensure Certificate console-external", "> Pending ensure Deployment console"),
		},
		"a Certificate without cert-manager": {
			scene: serving(secured()).leaves(v1().serving(t, 1, v1())), in: func(o *Observed) { o.NoCertManager = true },
			want: lines("  Failed  ensure Certificate console-external", "> Pending ensure Deployment console"),
		},
		"kinds that were not listed": {
			scene: serving(v1()),
			in: func(o *Observed) {
				o.Unlisted = slices.DeleteFunc(OwnedKinds(), func(k schema.GroupVersionKind) bool { return k == objects.KindRole })
			},
			want: lines("> Pending ensure Role environmentd"),
		},
		"only kinds that were not listed": {
			scene: serving(v1()), in: func(o *Observed) { o.Unlisted = OwnedKinds() }, want: lines("  Done    complete"),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.in != nil {
				c.in(&c.scene.Observed)
			}
			if diff := cmp.Diff(c.want, planned(decision{Plan: Plan(c.scene.Observed, epoch)})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
