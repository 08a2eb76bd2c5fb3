package adoption_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is said to Fairlead, to Karmada and to kubectl on the hub is not said to the member. What a user says to everybody is.
func TestAnnotationsThatReachTheMember(t *testing.T) {
	t.Parallel()
	const template = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: it
  labels: {app: a, karmada.io/managed: "false", fairlead.dev/work: forged}
  annotations:
    work.karmada.io/conflict-resolution: overwrite
    work.karmada.io/other: x
    policy.karmada.io/applied-placement: x
    karmada.io/note: x
    fairlead.dev/paused: "false"
    example.com/mine: mine
data: {a: b}
`
	for name, there := range map[string]bool{"of an object that is made": false, "of an object that is taken over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			if there {
				s.create(t, s.members[member1], configMap("it"))
			}
			s.kubectlApply(t, s.hub, template)
			s.create(t, s.hub, policy("v1", "ConfigMap"))
			s.says(t, "it-configmap", applied)
			now := configMap("it")
			s.read(t, s.members[member1], now)
			if diff := cmp.Diff(map[string]string{"example.com/mine": "mine"}, now.Annotations); diff != "" {
				t.Errorf("annotations (-want +got)\n%s", diff)
			}
			if now.Labels["app"] != "a" || !isMarked(now) || now.Labels["fairlead.dev/work"] == "forged" || len(now.Labels) != 4 {
				t.Errorf("labels %v", now.Labels)
			}
		})
	}
}

// A label that somebody has copied does not make an object Fairlead's.
func TestCopiedLabelGrantsNoOwnership(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	copied := configMap("it")
	copied.Labels = map[string]string{"karmada.io/managed": "true"}
	s.create(t, s.members[member1], copied)
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap"))
	s.trouble(t, member1, "it-configmap", "everything", conflict, "ConfigMap "+s.namespace+"/it exists in cluster member1 already, and is left alone")
}
