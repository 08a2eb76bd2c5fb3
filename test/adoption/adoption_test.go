package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/launch"
)

const patience = time.Minute

// site is a cluster as its administrator sees it.
type site struct {
	*cluster.Cluster
	client.WithWatch
}

func newSite(t *testing.T, profile string) *site {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Profile: profile})
	admin, err := launch.Administrator(c)
	if err != nil {
		t.Fatal(err)
	}
	return &site{c, admin}
}

func eventually(t *testing.T, try func(context.Context) error) {
	t.Helper()
	if err := launch.Attempt(t.Context(), patience, try); err != nil {
		t.Fatal(err)
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
			},
		},
	}
}

// An existing Deployment is left alone until somebody asks for it to be taken over, and then taken over without a restart.
func TestTakeOver(t *testing.T) {
	hub, west := newSite(t, "hub"), newSite(t, "cluster")
	operator, err := launch.Operator(t.TempDir(), "--kubeconfig", hub.Kubeconfig(), "--passages", "adoption", "--leader-elect=false", "--log-format", "text")
	if err != nil {
		t.Fatal(err)
	}
	operator.ShowTo(t)
	t.Cleanup(operator.Kill)
	eventually(t, func(context.Context) error {
		if !strings.Contains(operator.Log.Since(0), "msg=ready") {
			return errors.Join(operator.Alive(), errors.New("the operator is not ready"))
		}
		return nil
	})
	for _, s := range []*site{hub, west} {
		if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
			t.Fatal(err)
		}
	}
	cart := deployment("cart")
	if err := west.Create(t.Context(), cart); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := west.Get(ctx, client.ObjectKeyFromObject(cart), cart); err != nil {
			return err
		}
		if cart.Status.AvailableReplicas != 2 {
			return fmt.Errorf("it has %d pods", cart.Status.AvailableReplicas)
		}
		return nil
	})
	before := west.pods(t)

	if result := launch.Command(t, hub.Cluster, "join", "west", "--member-kubeconfig", west.Kubeconfig()); result.Code != 0 {
		t.Fatal(result.Stderr)
	}
	eventually(t, func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := hub.Get(ctx, client.ObjectKey{Name: "west"}, &c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
			return fmt.Errorf("it says %+v", c.Status.Conditions)
		}
		return nil
	})
	if err := hub.Create(t.Context(), deployment("cart")); err != nil {
		t.Fatal(err)
	}
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments-pp"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}},
		},
	}
	if err := hub.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	hub.applied(t, "cart-deployment", metav1.ConditionFalse, "ResourceConflict")
	now := deployment("cart")
	if err := west.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != cart.ResourceVersion {
		t.Errorf("it was touched: %s became %s", cart.ResourceVersion, now.ResourceVersion)
	}

	policy.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	eventually(t, func(ctx context.Context) error {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		policy.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		return hub.Update(ctx, policy)
	})
	hub.applied(t, "cart-deployment", metav1.ConditionTrue, "FullyAppliedSuccess")
	if err := west.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Fatal(err)
	}
	if now.Labels["karmada.io/managed"] != "true" || now.Generation != cart.Generation {
		t.Errorf("labels %v, generation %d became %d", now.Labels, cart.Generation, now.Generation)
	}
	if after := west.pods(t); after != before {
		t.Errorf("pods %s became %s", before, after)
	}
	eventually(t, func(ctx context.Context) error {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if s := policy.Status; s.Matched != 1 || s.Applied != 1 || s.Conflicting+s.Failed != 0 || !meta.IsStatusConditionTrue(s.Conditions, policyv1alpha1.ConditionReady) {
			return fmt.Errorf("the policy says %+v", s)
		}
		return nil
	})

	t.Run("what somebody changes in the cluster is put back", func(t *testing.T) {
		west.change(t, now, func() { now.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "EXTRA", Value: "1"}} })
		west.until(t, now, func() error {
			if n := len(now.Spec.Template.Spec.Containers[0].Env); n > 0 {
				return fmt.Errorf("it has %d variables", n)
			}
			return nil
		})
	})
	t.Run("what somebody deletes in the cluster is made again", func(t *testing.T) {
		uid := now.UID
		if err := west.Delete(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		west.until(t, now, func() error {
			if now.UID == uid {
				return errors.New("it is not gone")
			}
			return nil
		})
	})
	template := deployment("cart")
	t.Run("what changes on the hub changes in the cluster", func(t *testing.T) {
		hub.change(t, template, func() { template.Spec.Template.Spec.Containers[0].Image = "cart:2" })
		west.until(t, now, func() error {
			if image := now.Spec.Template.Spec.Containers[0].Image; image != "cart:2" {
				return fmt.Errorf("it has image %s", image)
			}
			return nil
		})
	})
	t.Run("a policy that goes leaves everything as it is", func(t *testing.T) {
		if err := hub.Delete(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		west.until(t, now, func() error { return nil })
	})
	t.Run("what is deleted on the hub goes from the cluster", func(t *testing.T) {
		if err := hub.Delete(t.Context(), template); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error {
			if err := west.Get(ctx, client.ObjectKeyFromObject(now), now); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there: %v", err)
			}
			return nil
		})
	})
}

// change reads an object, changes it and writes it back, until nobody was faster.
func (s *site) change(t *testing.T, object client.Object, change func()) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return s.Update(ctx, object)
	})
}

// until reads an object until it is as it should be.
func (s *site) until(t *testing.T, object client.Object, is func() error) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return is()
	})
}

// applied waits until the binding of a resource says so.
func (s *site) applied(t *testing.T, name string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var b workv1alpha2.ResourceBinding
		if err := s.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, &b); err != nil {
			return err
		}
		c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionFullyApplied)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("it says %+v", b.Status)
		}
		return nil
	})
}

func (s *site) pods(t *testing.T) string {
	t.Helper()
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, p := range pods.Items {
		text += p.Name + "=" + string(p.UID) + " "
	}
	return text
}
