package adoption_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	completed      = "watch pp everything -n NS --wait --timeout FOREVER"
	statusOfPolicy = "status pp everything -n NS"
)

// A status is that of the templates as they are now: while no operator has looked at an edit, the exit code is 3, whether the kind
// has a generation or not. What the hub itself notes on a template is no edit.
func TestStatusWhileOperatorIsDown(t *testing.T) {
	s := newStage(t)
	deployments := policy("apps/v1", "Deployment")
	deployments.Name = "deployments"
	s.create(t, s.hub, configMap("it", "a", "1"), deployment("cart"), policy("v1", "ConfigMap"), deployments)
	s.enter(t, 0, completed, "Completed")
	p := policy("", "")
	if s.read(t, s.hub, p); p.Status.Matched != 1 || p.Status.Applied != 1 {
		t.Errorf("the watch is over, and the policy counts %+v", p.Status)
	}
	s.enter(t, 0, "watch pp deployments -n NS --wait --timeout FOREVER", "Completed")

	s.operator.Kill()
	defer func() {
		if s.operator.Alive() != nil {
			if err := s.operate(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}()
	s.enter(t, 0, statusOfPolicy, "1 of 1 done")
	it, cart := configMap("it"), deployment("cart")
	s.change(t, s.hub, it, func() { it.Data["a"] = "2" })
	s.enter(t, 3, statusOfPolicy, "0 of 1 done", "the operator has not reported on the latest version of the template yet")
	s.read(t, s.hub, cart)
	cart.Status.Replicas = 1
	if err := s.hub.Status().Update(t.Context(), cart); err != nil {
		t.Fatal(err)
	}
	s.enter(t, 0, "status pp deployments -n NS", "1 of 1 done")
	s.change(t, s.hub, cart, func() { cart.Labels = map[string]string{"team": "shop"} })
	s.enter(t, 3, "status pp deployments -n NS", "the operator has not reported on the latest version of the template yet")

	if err := s.operate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.enter(t, 0, completed, "Completed")
	s.shows(t, 0, statusOfPolicy, "1 of 1 done")
	s.enter(t, 0, "watch pp deployments -n NS --wait --timeout FOREVER", "Completed")
	now, there := configMap("it"), deployment("cart")
	s.read(t, s.members[member1], now)
	s.read(t, s.members[member1], there)
	if now.Data["a"] != "2" || there.Labels["team"] != "shop" {
		t.Errorf("all is said to be applied, and the cluster has %v and %v", now.Data, there.Labels)
	}
}

// Of a cluster that cannot be reached nothing is known, and of one that is back nothing until its objects have been checked.
func TestStatusOfClusterThatIsBack(t *testing.T) {
	s := newStage(t)
	east := s.members[member2]
	s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap", everywhere))
	s.enter(t, 0, completed, "Completed")
	key, secret := client.ObjectKey{Namespace: "karmada-cluster", Name: member2}, &corev1.Secret{}
	setToken := func(token func([]byte) []byte) {
		t.Helper()
		wait.Until(t, func(ctx context.Context) error {
			if err := s.hub.Get(ctx, key, secret); err != nil {
				return err
			}
			secret.Data["token"] = token(secret.Data["token"])
			return s.hub.Update(ctx, secret)
		})
	}
	var valid []byte
	setToken(func(former []byte) []byte { valid = former; return []byte("revoked") })
	back := false
	defer func() {
		if !back {
			s.join(t, member2)
		}
	}()
	s.becomes(t, member2, metav1.ConditionFalse, "does not accept the token")
	s.shows(t, 3, statusOfPolicy, "1 of 2 done", "waiting until cluster member2 can be reached")

	it := configMap("it")
	s.change(t, east, it, func() { it.Data["a"] = "drifted" })
	release := s.recordWrites(t, east).fail()
	setToken(func([]byte) []byte { return valid })
	s.becomes(t, member2, metav1.ConditionTrue, "the API server responds")
	back = true
	s.shows(t, 3, statusOfPolicy, "1 of 2 done", "cluster member2 can be reached again, and not all of its objects have been checked yet")
	release()
	s.enter(t, 0, completed, "Completed")
	if s.read(t, east, it); it.Data["a"] != "1" {
		t.Errorf("all is said to be applied, and the cluster has %v", it.Data)
	}
}

// An object that waits until another one of its name is gone is in progress, and has not failed.
func TestStatusWhileObjectIsDeleted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	former := configMap("it", "a", "former")
	former.Finalizers = []string{"example.com/held"}
	s.create(t, west, former)
	s.remove(t, west, configMap("it"))
	s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap", overwrite))
	s.processed(t, member1, "it-configmap", "BeingDeleted")
	s.reported(t, "it-configmap", member1, "is being deleted, and is created again when it is gone")
	s.shows(t, 3, statusOfPolicy, "is being deleted, and is created again when it is gone")
	s.change(t, west, former, func() { former.Finalizers = nil })
	s.enter(t, 0, completed, "Completed")
}
