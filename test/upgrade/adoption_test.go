package upgrade_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const member = "member1"

// One of two resources has been taken over, and scaled by that. The other one stays as it is, because nobody has said that it may be
// overwritten.
var adoption = story{
	passage: "adoption",
	members: []string{member},
	flags:   func(*world) []string { return nil },
	prepare: func(t testing.TB, w *world) {
		// The address of the member, and the token for it, are of this day.
		w.command(t, "join", member, "--member-kubeconfig", w.members[member].Kubeconfig())
	},
	begin: func(t testing.TB, w *world) {
		// Only the hub says what may be overwritten.
		annotations := map[*site]string{w.site: "{work.karmada.io/conflict-resolution: overwrite}"}
		for at, replicas := range map[*site]string{w.members[member]: "2", w.site: "3"} {
			at.apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, annotations: `+cmp.Or(annotations[at], "{}")+`}
spec:
  replicas: `+replicas+`
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: cart}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {replicas: "`+replicas+`"}
`)
		}
		w.apply(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: shop}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: cart}
    - {apiVersion: v1, kind: ConfigMap, name: settings}
  placement: {clusterAffinity: {clusterNames: [member1]}}
`)
		w.counts(t, 1, 1)
		w.scaled(t, 3)
	},
	end: func(t testing.TB, w *world) {
		w.counts(t, 1, 1)
		at := w.members[member]
		cart := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
		if err := at.Get(t.Context(), client.ObjectKeyFromObject(cart), cart); err != nil {
			t.Fatal(err)
		}
		before := cart.Generation
		policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}
		harness.Change(t, w, policy, func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		})
		w.counts(t, 2, 0)
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
		harness.WaitFor(t, at, settings, func(c *corev1.ConfigMap) error {
			if c.Data["replicas"] != "3" {
				return fmt.Errorf("it has %v", c.Data)
			}
			return nil
		})
		if err := at.Get(t.Context(), client.ObjectKeyFromObject(cart), cart); err != nil || cart.Generation != before {
			t.Errorf("what had been taken over was written again: generation %d became %d: %v", before, cart.Generation, err)
		}
		// The older operator wrote down what had been there before.
		w.command(t, "abort", "pp", "shop", "-n", "shop", "--yes")
		w.scaled(t, 2)
	},
}

// counts waits until the policy has so many of its two resources applied, and so many in conflict.
func (w *world) counts(t testing.TB, applied, conflicting int32) {
	t.Helper()
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}
	harness.WaitFor(t, w, policy, func(p *policyv1alpha1.PropagationPolicy) error {
		if err := w.operator.Alive(); err != nil {
			return err
		}
		if got := p.Status; p.Status.ObservedGeneration != p.Generation || int(got.Matched) != 2 || int32(got.Applied) != applied || int32(got.Conflicting) != conflicting {
			return fmt.Errorf("the policy counts %+v:%s", got, harness.DescribeConditions(got.Conditions))
		}
		return nil
	})
}

// scaled waits until the Deployment of the member has so many replicas.
func (w *world) scaled(t testing.TB, replicas int32) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var cart appsv1.Deployment
		if err := w.members[member].Get(ctx, client.ObjectKey{Namespace: "shop", Name: "cart"}, &cart); err != nil {
			return err
		}
		if *cart.Spec.Replicas != replicas {
			return fmt.Errorf("cart has %d replicas, want %d", *cart.Spec.Replicas, replicas)
		}
		return nil
	})
}
