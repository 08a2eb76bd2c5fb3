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
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/launch"
	"github.com/fairlead/fairlead/test/wait"
)

// yard is the namespace that the commands are tried in.
const yard = "yard"

// console is a hub and a cluster, as one sees them who enters commands.
type console struct {
	hub, west           *cluster.Cluster
	hubAdmin, westAdmin client.WithWatch
}

func newConsole(t *testing.T) *console {
	t.Helper()
	c := &console{hub: cluster.Start(t, cluster.Options{Profile: "hub"}), west: cluster.Start(t, cluster.Options{})}
	var err error
	if c.hubAdmin, err = launch.Administrator(c.hub); err != nil {
		t.Fatal(err)
	}
	if c.westAdmin, err = launch.Administrator(c.west); err != nil {
		t.Fatal(err)
	}
	operator, err := launch.Operator(t.TempDir(), "--kubeconfig", c.hub.Kubeconfig(), "--passages", "adoption", "--leader-elect=false", "--log-format", "text")
	if err != nil {
		t.Fatal(err)
	}
	operator.ShowTo(t)
	t.Cleanup(operator.Kill)
	c.soon(t, func(context.Context) error {
		if !strings.Contains(operator.Log.Since(0), "msg=ready") {
			return errors.Join(operator.Alive(), errors.New("the operator is not ready"))
		}
		return nil
	})
	return c
}

func (c *console) soon(t *testing.T, try func(context.Context) error) {
	t.Helper()
	if err := wait.Try(t.Context(), try); err != nil {
		t.Fatal(err)
	}
}

// enter a command, which is to end with a code and to say some things.
func (c *console) enter(t *testing.T, code int, command string, says ...string) launch.Result {
	t.Helper()
	result := launch.Command(t, c.hub, strings.Fields(command)...)
	said := strings.Join(strings.Fields(result.Stdout+" "+result.Stderr), " ")
	if result.Code != code {
		t.Errorf("%s ended with %d, want %d:\n%s%s", command, result.Code, code, result.Stdout, result.Stderr)
	}
	for _, want := range says {
		if !strings.Contains(said, want) {
			t.Errorf("%s did not say %q:\n%s%s", command, want, result.Stdout, result.Stderr)
		}
	}
	return result
}

func (c *console) create(t *testing.T, in client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := in.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// state is every Deployment and Service of the cluster by version, and every pod by UID.
func (c *console) state(t *testing.T, versions bool) string {
	t.Helper()
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&deployments, &services, &pods} {
		if err := c.westAdmin.List(t.Context(), list, client.InNamespace(yard)); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
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
	for i := range pods.Items {
		all = append(all, string(pods.Items[i].UID))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func running(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: yard, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: name, Image: name + ":1",
					EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
				}}},
			},
		},
	}
}

// What runs in a cluster is looked at, adopted, followed and planned for from the command line.
func TestCommands(t *testing.T) {
	c := newConsole(t)
	theirs := running("theirs")
	theirs.Labels = map[string]string{"karmada.io/managed": "true", "fairlead.dev/hub": "another", "fairlead.dev/work": digest("apps", "Deployment", "yard", "theirs")}
	c.create(t, c.westAdmin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: yard}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: yard, Name: "settings"}, Data: map[string]string{"colour": "red"}},
		running("cart"), running("pay"), theirs,
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: yard, Name: "cart"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "cart"}, Ports: []corev1.ServicePort{{Port: 80}}},
		})
	c.soon(t, func(ctx context.Context) error {
		for _, name := range []string{"cart", "pay", "theirs"} {
			d := &appsv1.Deployment{}
			if err := c.westAdmin.Get(ctx, client.ObjectKey{Namespace: yard, Name: name}, d); err != nil {
				return err
			}
			if d.Status.AvailableReplicas != 2 {
				return fmt.Errorf("%s has %d pods", name, d.Status.AvailableReplicas)
			}
		}
		return nil
	})
	before, pods := c.state(t, true), c.state(t, false)

	c.enter(t, 0, "clusters", "No cluster has joined")
	c.enter(t, 1, "adopt --cluster west -n yard --yes", "no cluster west has joined the hub: `fairlead clusters` lists those that have")
	c.enter(t, 0, "join west --member-kubeconfig "+c.west.Kubeconfig(), "joined")
	c.soon(t, func(context.Context) error {
		if out := c.enter(t, 0, "clusters").Stdout; !strings.Contains(out, "west   True    v1.") {
			return errors.New(out)
		}
		return nil
	})

	file := filepath.Join(t.TempDir(), "adopted.yaml")
	t.Run("adopt prints what it would write", func(t *testing.T) {
		result := c.enter(t, 0, "adopt --cluster west -n yard --with-dependencies -o yaml", "kind: PropagationPolicy", "conflictResolution: Overwrite", "name: settings")
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
		c.enter(t, 3, "plan pp adopted-west -n yard -f "+file, "in 1 cluster: 4 to take over. No pod restarts.", "2 stay")
	})
	if err := c.hubAdmin.Get(t.Context(), client.ObjectKey{Name: yard}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written to the hub: %v", err)
	}
	if after := c.state(t, true); after != before {
		t.Errorf("something was written to the cluster: %s became %s", before, after)
	}

	t.Run("adopt takes over without a restart", func(t *testing.T) {
		c.enter(t, 0, "adopt --cluster west -n yard --with-dependencies --yes", "4 templates written", "Deployment yard/theirs another hub manages it", "4 of 4 templates written")
		c.enter(t, 0, "watch pp adopted-west -n yard --wait --timeout 25s", "Completed")
		c.enter(t, 0, "status pp adopted-west -n yard", "4 of 4 done", "west 4/4 0 0")
		c.enter(t, 0, "plan pp adopted-west -n yard", "4 unchanged")
		c.enter(t, 0, "clusters", "4/4")
		if after := c.state(t, false); after != pods {
			t.Errorf("%s became %s", pods, after)
		}
	})
	t.Run("adopt again changes nothing", func(t *testing.T) {
		c.enter(t, 0, "adopt --cluster west -n yard --yes", "the hub has all of it already")
	})
	t.Run("plan tells what restarts, and what only moves the generation", func(t *testing.T) {
		c.enter(t, 0, "pause pp adopted-west -n yard")
		c.soon(t, func(ctx context.Context) error {
			cart, pay := running("cart"), running("pay")
			if err := errors.Join(c.hubAdmin.Get(ctx, client.ObjectKeyFromObject(cart), cart), c.hubAdmin.Get(ctx, client.ObjectKeyFromObject(pay), pay)); err != nil {
				return err
			}
			cart.Spec.Template.Spec.Containers[0].Image = "cart:2"
			metav1.SetMetaDataAnnotation(&pay.ObjectMeta, "team", "blue")
			return errors.Join(c.hubAdmin.Update(ctx, cart), c.hubAdmin.Update(ctx, pay))
		})
		c.enter(t, 3, "plan pp adopted-west -n yard", "2 to update, 2 unchanged. 2 pods of 1 workload restart.", "Held: it is paused", "2 restart",
			"~ spec.template.spec.containers[cart].image: cart:1 -> cart:2",
			"Deployment yard/pay in west: annotations move the generation, and no pod restarts + metadata.annotations.team: blue")
		var told struct {
			Adoption struct {
				Totals  struct{ PodsThatRestart, WorkloadsThatRestart int }
				Objects []struct {
					Object   struct{ Cluster, Name string }
					Action   string
					Restarts bool
				}
			}
		}
		if err := json.Unmarshal([]byte(c.enter(t, 3, "plan pp adopted-west -n yard -o json").Stdout), &told); err != nil {
			t.Fatal(err)
		}
		if a := told.Adoption; a.Totals.PodsThatRestart != 2 || a.Totals.WorkloadsThatRestart != 1 || len(a.Objects) != 4 || a.Objects[1].Action != "update" || !a.Objects[1].Restarts {
			t.Errorf("it says %+v", a)
		}
		c.enter(t, 0, "resume pp adopted-west -n yard")
	})
	t.Run("plan and status tell of a conflict", func(t *testing.T) {
		c.create(t, c.westAdmin, running("old"))
		c.create(t, c.hubAdmin, running("old"), running("fresh"), policyOn("careful", "old", "fresh"))
		c.enter(t, 1, "watch pp careful -n yard --wait --timeout 25s", "1 failed")
		c.enter(t, 1, "status pp careful -n yard", "west 1/2 0 1", "Deployment yard/old exists in cluster west already")
		c.enter(t, 1, "plan pp careful -n yard", "1 unchanged, 1 in conflict", "set conflictResolution of the policy to Overwrite")
	})
	t.Run("a cluster that cannot be reached holds up no other", func(t *testing.T) {
		c.create(t, c.hubAdmin, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "east"},
			Spec: clusterv1alpha1.ClusterSpec{
				APIEndpoint: "https://127.0.0.1:1", SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "west"},
			},
		})
		c.create(t, c.westAdmin, running("last"))
		p := policyOn("both", "last")
		p.Spec.ConflictResolution, p.Spec.Suspension = policyv1alpha1.ConflictOverwrite, &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
		c.create(t, c.hubAdmin, running("last"), p)
		c.enter(t, 1, "plan pp both -n yard", "in 2 clusters: 1 to take over, 1 unknown.", "cluster east cannot be reached at https://127.0.0.1:1",
			"Held: nothing is written to clusters while its spec.suspension.dispatching is true")
		c.soon(t, func(context.Context) error {
			if out := c.enter(t, 0, "clusters").Stdout; !strings.Contains(out, "east   False") || !strings.Contains(out, "ClusterNotReachable") {
				return errors.New(out)
			}
			return nil
		})
	})
	t.Run("what does not exist", func(t *testing.T) {
		c.enter(t, 1, "plan pp nothing -n yard", "propagationpolicy.policy.karmada.io/nothing does not exist in namespace yard")
		c.enter(t, 1, "adopt --cluster west -n yard --kind wheels --yes", `cluster west has no kind "wheels"`)
		c.enter(t, 1, "adopt --cluster west -n yard --kind leases --yes", "list leases in cluster west", `add the rule {apiGroups: ["coordination.k8s.io"], resources: [leases]`, `to a ClusterRole there with the label fairlead.dev/aggregate-to-member: "true"`)
		c.enter(t, 0, "adopt --cluster west -n nowhere --yes", "There is nothing to adopt in namespace nowhere of cluster west.")
	})
}

// policyOn takes Deployments by name.
func policyOn(name string, deployments ...string) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: yard, Name: name}}
	for _, d := range deployments {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: d})
	}
	return p
}
