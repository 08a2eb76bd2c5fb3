package rollout

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// TestServiceAccountThatDoesNotAllowIt: nothing is rolled out with it, nothing is granted to it, and what runs goes on.
func TestServiceAccountThatDoesNotAllowIt(t *testing.T) {
	own := func(account string) maker { m := makeMaterialize(); m.Spec.ServiceAccountName = account; return m }
	v1, theirs := makeMaterialize, func() maker { return own("theirs") }
	newer := func() maker { return own("theirs").image("v2") }
	there, mine := ServiceAccount{Exists: true}, ServiceAccount{Exists: true, Allowed: true}
	begun := func() maker {
		return newer().serving(t, 1, theirs()).requested(t, newer(), 0).reported(v1alpha2.ReasonApplying)
	}
	cases := map[string]struct {
		scene scene
		want  []string
		// refused is a part of the refusal, empty if it is not refused.
		refused string
		// granted are the subjects of the RoleBinding.
		granted []string
	}{
		"first": {
			scene: seeing(t, theirs()).account("theirs", there), want: lines("> Pending identify", "  Failed  request"), refused: "ServiceAccount shop/theirs",
		},
		"first, with a name": {
			scene: seeing(t, theirs().identified()).account("theirs", there), want: lines("  Failed  request"), refused: "fairlead.dev/allow-materialize",
		},
		"it does not exist": {
			scene: seeing(t, theirs().identified()).account("theirs", ServiceAccount{}), want: lines("  Failed  request"), refused: "does not exist",
		},
		"it cannot be read": {
			scene: seeing(t, theirs().identified()).account("theirs", ServiceAccount{Err: errors.New("forbidden")}), want: lines("  Failed  request"), refused: "forbidden",
		},
		"nobody has looked": {
			scene: seeing(t, theirs().identified()).account("other", mine), want: lines("  Failed  request"), refused: "does not exist",
		},
		"another one was in use": {
			scene: seeing(t, theirs().serving(t, 1, v1())).generation(1, v1()).account("theirs", there).complete(),
			want:  lines("  Failed  request"), refused: "kubectl -n shop annotate serviceaccount theirs fairlead.dev/allow-materialize=true",
			granted: []string{"mza1b2c3d4e5-environmentd"},
		},
		"another one was in use, and its pods are gone": {
			scene: seeing(t, theirs().serving(t, 1, v1())).generation(1, v1()).without(1, "StatefulSet").account("theirs", there).complete(),
			want:  lines("> Pending ensure StatefulSet environmentd-1", "  Failed  request"), refused: "theirs", granted: []string{"mza1b2c3d4e5-environmentd"},
		},
		"it runs from before Fairlead asked": {
			scene: seeing(t, theirs().serving(t, 1, theirs())).generation(1, theirs()).account("theirs", there).complete(), refused: "theirs", granted: []string{"theirs"},
		},
		"it runs from before Fairlead asked, and was deleted": {
			scene: seeing(t, theirs().serving(t, 1, theirs())).generation(1, theirs()).account("theirs", ServiceAccount{}).complete(), refused: "does not exist", granted: []string{"theirs"},
		},
		"it runs, and has lost its pods": {
			scene: seeing(t, theirs().serving(t, 1, theirs())).generation(1, theirs()).without(1, "StatefulSet").account("theirs", there).complete(),
			want:  lines("> Pending apply StatefulSet environmentd-1"), refused: "theirs", granted: []string{"theirs"},
		},
		"it runs, and the next rollout is asked for": {
			scene: seeing(t, newer().serving(t, 1, theirs())).generation(1, theirs()).account("theirs", there).complete(),
			want:  lines("  Failed  request"), refused: "theirs", granted: []string{"theirs"},
		},
		"half-way through a rollout": {
			scene: seeing(t, begun()).generation(1, theirs()).generation(2, newer()).account("theirs", there).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("  Failed  request"), refused: "theirs", granted: []string{"theirs"},
		},
		"half-way through the first rollout": {
			scene: seeing(t, theirs().identified().requested(t, theirs(), 0).reported(v1alpha2.ReasonApplying)).generation(1, theirs()).account("theirs", there).complete(),
			want:  lines("  Failed  request"), refused: "theirs", granted: []string{"theirs"},
		},
		"half-way through a promotion": {
			scene: seeing(t, begun().reported(v1alpha2.ReasonPromoting)).generation(1, theirs()).generation(2, newer()).account("theirs", there).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("> Pending promote StatefulSet environmentd-2", "  Pending switch Service environmentd", removeFirst, "  Pending complete"), refused: "theirs", granted: []string{"theirs"},
		},
		"it allows it": {
			scene: seeing(t, theirs().serving(t, 1, theirs())).generation(1, theirs()).account("theirs", mine).complete(), granted: []string{"theirs"},
		},
		"it is the one that Fairlead makes": {
			scene:   seeing(t, own("mza1b2c3d4e5-environmentd").serving(t, 1, own("mza1b2c3d4e5-environmentd"))).generation(1, own("mza1b2c3d4e5-environmentd")).account("", ServiceAccount{}).complete(),
			granted: []string{"mza1b2c3d4e5-environmentd"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(c.scene.Observed, epoch)
			if diff := cmp.Diff(c.want, planned(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			status := c.scene.Materialize.Status.DeepCopy()
			reportAccount(status, c.scene.Observed, metav1.NewTime(epoch))
			condition := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionServiceAccountAllowed)
			switch {
			case c.refused == "" && condition != nil:
				t.Errorf("refused: %s", condition.Message)
			case c.refused != "" && (condition == nil || condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, c.refused)):
				t.Errorf("condition %+v", condition)
			}
			var granted []string
			shared, err := objects.Shared(c.scene.Materialize, c.scene.activeConfig())
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range shared {
				subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
				for _, subject := range subjects {
					granted = append(granted, subject.(map[string]any)["name"].(string))
				}
			}
			if diff := cmp.Diff(c.granted, granted); diff != "" {
				t.Errorf("granted (-want +got)\n%s", diff)
			}
		})
	}
}

// TestWhichServiceAccountsAllowIt reads them as the operator does.
func TestWhichServiceAccountsAllowIt(t *testing.T) {
	annotated := func(value string) *unstructured.Unstructured {
		account := newUnstructured(objects.KindServiceAccount)
		account.SetAnnotations(map[string]string{v1alpha2.AnnotationAllowMaterialize: value})
		return account
	}
	owned := func(uid types.UID) *unstructured.Unstructured {
		account := newUnstructured(objects.KindServiceAccount)
		account.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Materialize", UID: uid}})
		return account
	}
	for name, c := range map[string]struct {
		account *unstructured.Unstructured
		want    ServiceAccount
	}{
		"none":                      {nil, ServiceAccount{}},
		"without the annotation":    {newUnstructured(objects.KindServiceAccount), ServiceAccount{Exists: true}},
		"with the annotation":       {annotated("true"), ServiceAccount{Exists: true, Allowed: true}},
		"with another value":        {annotated("false"), ServiceAccount{Exists: true}},
		"it belongs to it":          {owned(testUID), ServiceAccount{Exists: true, Allowed: true}},
		"it belongs to another one": {owned("other"), ServiceAccount{Exists: true}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			cluster.m.Spec.ServiceAccountName = "theirs"
			if c.account != nil {
				c.account.SetNamespace("shop")
				c.account.SetName("theirs")
				cluster.objects[objects.Identity(c.account)] = c.account
			}
			var o Observed
			if err := o.ReadServiceAccount(t.Context(), cluster.m, &api{cluster: cluster}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, o.ServiceAccounts["theirs"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
