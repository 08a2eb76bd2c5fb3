package adoption_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// enter a command, in which NS stands for the namespace of the test, and which is to end with a code and to say some things.
func (s *stage) enter(t *testing.T, code int, command string, says ...string) harness.CommandResult {
	t.Helper()
	var result harness.CommandResult
	var wrong error
	wait.Until(t, func(context.Context) error {
		result, wrong = s.try(t, code, command, says)
		// On a busy machine, a cluster may take longer to answer than a command waits, which has written nothing by then.
		if wrong != nil && strings.Contains(strings.Join(strings.Fields(result.Stdout+result.Stderr), " "), "context deadline exceeded") {
			return wrong
		}
		return nil
	})
	if wrong != nil {
		t.Error(wrong)
	}
	return result
}

// shows waits until a command that only looks ends with a code and says some things: the operator may have a cluster checked at the
// moment, or not have reported on it yet.
func (s *stage) shows(t *testing.T, code int, command string, says ...string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		_, err := s.try(t, code, command, says)
		return err
	})
}

// try runs a command once, and tells what is wrong about its end.
func (s *stage) try(t *testing.T, code int, command string, says []string) (harness.CommandResult, error) {
	t.Helper()
	here := strings.NewReplacer("NS", s.namespace, "FOREVER", wait.Deadline().String())
	result := harness.RunCommand(t, s.hub.Cluster, strings.Fields(here.Replace(command))...)
	said := strings.Join(strings.Fields(result.Stdout+" "+result.Stderr), " ")
	var errs []error
	if result.Code != code {
		errs = append(errs, fmt.Errorf("%s ended with %d, want %d:\n%s%s", command, result.Code, code, result.Stdout, result.Stderr))
	}
	for _, want := range says {
		if !strings.Contains(said, here.Replace(want)) {
			errs = append(errs, fmt.Errorf("%s did not say %q:\n%s%s", command, want, result.Stdout, result.Stderr))
		}
	}
	return result, errors.Join(errs...)
}

// state is every Deployment and Service of the member by version, and every pod by UID.
func (s *stage) state(t *testing.T, versions bool) string {
	t.Helper()
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&deployments, &services} {
		if err := s.members[member1].List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	all := s.pods(t, s.members[member1])
	for i := range deployments.Items {
		d := &deployments.Items[i]
		all = append(all, fmt.Sprintf("%s@%d", d.Name, d.Generation))
		if versions {
			all = append(all, d.ResourceVersion)
		}
	}
	for i := range services.Items {
		if versions {
			all = append(all, services.Items[i].ResourceVersion)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// workload has two pods, which read a ConfigMap.
func workload(name string) *appsv1.Deployment {
	return deployment(name, func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](2)
		d.Spec.Template.Spec.Containers[0].Image = name + ":1"
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
		}}}
	})
}

// What runs in a cluster is looked at, adopted, followed and planned for from the command line. The hub has no namespace for it
// to begin with.
func TestCommands(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	s := &stage{w, cluster.Name(t)}
	west := s.members[member1]
	if err := west.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	theirs := workload("theirs")
	theirs.Labels = map[string]string{
		"karmada.io/managed": "true", "fairlead.dev/hub": "another", "fairlead.dev/work": digest("apps", "Deployment", s.namespace, "theirs"),
	}
	s.create(t, west, configMap("settings", "colour", "red"), workload("cart"), workload("pay"), theirs,
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "cart"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "cart"}, Ports: []corev1.ServicePort{{Port: 80}}},
		})
	for _, name := range []string{"cart", "pay", "theirs"} {
		s.running(t, west, name)
	}
	before, pods := s.state(t, true), s.state(t, false)

	s.enter(t, 1, "adopt --cluster nowhere -n NS --yes", "no cluster nowhere has joined the hub: `fairlead clusters` lists those that have")
	s.shows(t, 0, "clusters", "member1 True v1.")

	file := filepath.Join(t.TempDir(), "adopted.yaml")
	t.Run("adopt prints what it would write", func(t *testing.T) {
		result := s.enter(t, 0, "adopt --cluster member1 -n NS --with-dependencies -o yaml", "kind: PropagationPolicy", "conflictResolution: Overwrite", "name: settings")
		for _, never := range []string{"nodePort:", "clusterIP", "resourceVersion", "managedFields", "status:", "deployment.kubernetes.io/revision", "theirs"} {
			if strings.Contains(result.Stdout, never) {
				t.Errorf("there is %s in\n%s", never, result.Stdout)
			}
		}
		if err := os.WriteFile(file, []byte(result.Stdout), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("plan tells what that would do", func(t *testing.T) {
		s.enter(t, 3, "plan pp adopted-member1 -n NS -f "+file, "in 1 cluster: 4 to take over. No pod restarts.", "2 stay")
	})
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: s.namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written to the hub: %v", err)
	}
	if after := s.state(t, true); after != before {
		t.Errorf("something was written to the cluster: %s became %s", before, after)
	}

	t.Run("adopt takes over without a restart", func(t *testing.T) {
		s.enter(t, 0, "adopt --cluster member1 -n NS --with-dependencies --yes", "4 templates written", "Deployment NS/theirs managed by another hub", "4 of 4 templates written")
		s.enter(t, 0, "watch pp adopted-member1 -n NS --wait --timeout FOREVER", "Completed")
		s.shows(t, 0, "status pp adopted-member1 -n NS", "4 of 4 done", "member1 4/4 0 0")
		s.enter(t, 0, "plan pp adopted-member1 -n NS", "4 unchanged")
		if after := s.state(t, false); after != pods {
			t.Errorf("%s became %s", pods, after)
		}
	})
	t.Run("adopt again changes nothing", func(t *testing.T) {
		s.enter(t, 0, "adopt --cluster member1 -n NS --yes", "the hub has all of it already")
	})
	t.Run("plan tells what restarts, and what only moves the generation", func(t *testing.T) {
		s.enter(t, 0, "pause pp adopted-member1 -n NS")
		for _, binding := range []string{"cart-deployment", "pay-deployment"} {
			s.says(t, binding, "DispatchingSuspended")
		}
		cart, pay := workload("cart"), workload("pay")
		s.change(t, s.hub, cart, func() { cart.Spec.Template.Spec.Containers[0].Image = "cart:2" })
		s.change(t, s.hub, pay, func() { annotate(pay, "team", "blue") })
		s.enter(t, 3, "plan pp adopted-member1 -n NS", "2 to update, 2 unchanged. 2 pods of 1 workload restart.", "Held: the policy is paused", "2 restart",
			"~ spec.template.spec.containers[cart].image: cart:1 -> cart:2",
			"Deployment NS/pay in member1: annotations change the generation, and no pod restarts + metadata.annotations.team: blue")
		var reported struct {
			Adoption struct {
				Totals  struct{ PodsThatRestart, WorkloadsThatRestart int }
				Objects []struct {
					Object   struct{ Cluster, Name string }
					Action   string
					Restarts bool
				}
			}
		}
		if err := json.Unmarshal([]byte(s.enter(t, 3, "plan pp adopted-member1 -n NS -o json").Stdout), &reported); err != nil {
			t.Fatal(err)
		}
		if a := reported.Adoption; a.Totals.PodsThatRestart != 2 || a.Totals.WorkloadsThatRestart != 1 || len(a.Objects) != 4 || a.Objects[1].Action != "update" || !a.Objects[1].Restarts {
			t.Errorf("it says %+v", a)
		}
		s.enter(t, 0, "resume pp adopted-member1 -n NS")
	})
	t.Run("plan and status tell of a conflict", func(t *testing.T) {
		s.create(t, west, workload("old"))
		s.create(t, s.hub, workload("old"), workload("fresh"), policyOn("careful", to(member1), "old", "fresh"))
		s.enter(t, 1, "watch pp careful -n NS --wait --timeout FOREVER", "1 failed")
		s.shows(t, 1, "status pp careful -n NS", "member1 1/2 0 1", "Deployment NS/old exists in cluster member1 already")
		s.enter(t, 1, "plan pp careful -n NS", "1 unchanged, 1 in conflict", "set conflictResolution of the policy to Overwrite")
	})
	t.Run("a cluster that cannot be reached holds up no other", func(t *testing.T) {
		unreachable := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "east"},
			Spec: clusterv1alpha1.ClusterSpec{
				APIEndpoint: "https://127.0.0.1:1", SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: member1},
			},
		}
		if err := s.hub.Create(t.Context(), unreachable); err != nil {
			t.Fatal(err)
		}
		defer s.enter(t, 0, "unjoin east --force --yes --timeout FOREVER")
		s.create(t, west, workload("last"))
		// A plan tries a write a few times that conflicts with those of the controllers of the cluster.
		s.running(t, west, "last")
		p := policyOn("both", to(member1, "east"), "last")
		p.Spec.ConflictResolution, p.Spec.Suspension = policyv1alpha1.ConflictOverwrite, &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
		s.create(t, s.hub, workload("last"), p)
		s.enter(t, 1, "plan pp both -n NS", "in 2 clusters: 1 to take over, 1 unknown.", "cluster east cannot be reached at https://127.0.0.1:1",
			"Held: nothing is written to clusters while spec.suspension.dispatching of the policy is true")
		s.shows(t, 0, "clusters", "east False", "ClusterNotReachable")
	})
	t.Run("what does not exist", func(t *testing.T) {
		s.enter(t, 1, "plan pp nothing -n NS", "propagationpolicy.policy.karmada.io/nothing does not exist in namespace NS")
		s.enter(t, 2, "plan propagationpolcy nothing -n NS", "did you mean propagationpolicy?")
		s.enter(t, 1, "adopt --cluster member1 -n NS --kind wheels --yes", `cluster member1 has no kind "wheels"`)
		s.enter(t, 1, "adopt --cluster member1 -n NS --kind leases --yes", "list leases in cluster member1", `add the rule {apiGroups: ["coordination.k8s.io"], resources: [leases]`, `to a ClusterRole of the cluster with the label fairlead.dev/aggregate-to-member: "true"`)
		s.enter(t, 1, "adopt --cluster member1 -n nowhere --yes", "namespace nowhere does not exist in cluster member1")
	})
}

// policyOn takes Deployments by name.
func policyOn(name string, placement policyv1alpha1.Placement, deployments ...string) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.PropagationSpec{Placement: placement}}
	for _, d := range deployments {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: d})
	}
	return p
}
