package rollout

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// inherits has the permissions of a spec as another operator has made them.
func (s scene) inherits(b maker) scene {
	s.t.Helper()
	shared, err := objects.Shared(b.Materialize, objects.ActiveConfig{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.InheritedObjects = map[passage.Object]*unstructured.Unstructured{}
	for _, object := range shared {
		object.SetLabels(nil)
		object.SetAnnotations(nil)
		s.InheritedObjects[objects.Identity(object)] = object
	}
	return s
}

// Of what another operator has made, only what a rollout needs is changed before the next generation leads: permissions are added,
// and none is taken from what serves.
func TestInheritedPermissions(t *testing.T) {
	own := func(account string) maker {
		m := makeMaterialize().image("v2")
		m.Spec.ServiceAccountName = account
		return m
	}
	serving := func(b maker) maker { return b.serving(t, 1, makeMaterialize()) }
	const made = "mza1b2c3d4e5-environmentd"
	for name, c := range map[string]struct {
		scene scene
		// grants are the subjects of the RoleBinding that is applied, none if it stays as it is.
		grants []string
	}{
		"nothing rolls out": {
			scene: seeing(t, serving(makeMaterialize())).foreign(1).inherits(makeMaterialize().identified()),
		},
		"another image": {
			scene: seeing(t, serving(makeMaterialize().image("v2"))).foreign(1).inherits(makeMaterialize().identified()), grants: []string{made},
		},
		"another image and ServiceAccount": {
			scene: seeing(t, serving(own("theirs"))).foreign(1).inherits(makeMaterialize().identified()), grants: []string{"theirs", made},
		},
		"another ServiceAccount, while the next generation catches up": {
			scene: seeing(t, serving(own("theirs")).requested(t, own("theirs"), 0).reported(v1alpha2.ReasonApplying)).foreign(1).generation(2, own("theirs")).
				inherits(makeMaterialize().identified()).hears(v1alpha2.LeaderInitializing), grants: []string{"theirs", made},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(c.scene.Observed, epoch)
			var grants []string
			for _, step := range d.Steps {
				if c.scene.InheritedObjects[step.Object] != nil && step.Reason.Code == CodeMissing {
					t.Errorf("%s %s: %s", step.Action, step.Object, step.Reason.Message)
				}
				if step.Object.Kind == "RoleBinding" {
					grants = subjectsOf(d.desired[step.Object])
				}
			}
			if !slices.Equal(grants, c.grants) {
				t.Errorf("grants to %v, want %v", grants, c.grants)
			}
		})
	}
}
