package scale_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// fleet is a hub, and clusters that have joined it.
type fleet struct {
	*site
	members  []*site
	operator *harness.Operator
	address  string
}

// site is one cluster of a fleet.
type site struct {
	client.WithWatch
	name    string
	cluster *cluster.Cluster
	kube    kubernetes.Interface
	// processes are those of the components of the cluster, once somebody has asked for them.
	processes map[string]int
}

func newSite(b *testing.B, name, profile string) *site {
	b.Helper()
	s := &site{name: name, cluster: cluster.Start(b, cluster.Options{Profile: profile})}
	var err error
	if s.WithWatch, err = harness.NewAdminClient(s.cluster); err != nil {
		b.Fatal(err)
	}
	if s.kube, err = kubernetes.NewForConfig(fast(s.cluster.Config())); err != nil {
		b.Fatal(err)
	}
	if err := s.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: adoptionNamespace}}); err != nil {
		b.Fatal(err)
	}
	return s
}

func newFleet(b *testing.B, members int, profile string) *fleet {
	b.Helper()
	f := &fleet{site: newSite(b, "hub", "hub"), address: freeAddress(b)}
	f.start(b)
	for i := range members {
		m := newSite(b, fmt.Sprintf("member%d", i+1), profile)
		if result := harness.RunCommand(b, f.cluster, "join", m.name, "--member-kubeconfig", m.cluster.Kubeconfig()); result.Code != 0 {
			b.Fatal(result.Stderr)
		}
		if profile == "hub" {
			if err := harness.AggregateMemberRole(b.Context(), m); err != nil {
				b.Fatal(err)
			}
		}
		f.members = append(f.members, m)
	}
	return f
}

// start the operator, with no more than the chart allows it.
func (f *fleet) start(b *testing.B) {
	b.Helper()
	kubeconfig, err := harness.InstallPermissions(b.Context(), f.cluster, f.WithWatch, b.TempDir(), "adoption")
	if err != nil {
		b.Fatal(err)
	}
	// As many requests at a time are what counts here, for the bare client has no other limit either.
	if f.operator, err = harness.StartOperator(b.TempDir(), "--kubeconfig", kubeconfig, "--passages", "adoption", "--leader-elect=false",
		"--metrics-insecure-bind-address", f.address, "--member-qps=-1"); err != nil {
		b.Fatal(err)
	}
	f.operator.KeepLogOnFailure(b)
	b.Cleanup(f.operator.Kill)
	err = wait.Try(b.Context(), func(ctx context.Context) error {
		if err := f.operator.Alive(); err != nil {
			return err
		}
		return f.List(ctx, &policyv1alpha1.PropagationPolicyList{}, client.Limit(1))
	})
	if err != nil {
		b.Fatal(err)
	}
}

func stock(i int) *appsv1.Deployment {
	name := fmt.Sprintf("app-%04d", i)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: adoptionNamespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
}

func numbers(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// stockUp makes Deployments in a cluster.
func (s *site) stockUp(b *testing.B, from, to int) {
	b.Helper()
	if err := atATime(adoptionParallel, numbers(from, to), func(i int) error { return s.Create(b.Context(), stock(i)) }); err != nil {
		b.Fatal(err)
	}
}

// applyBare is what a client does that has nothing else in mind: it applies all, to all clusters, as many at a time as the
// operator does.
func (f *fleet) applyBare(b *testing.B, count, round int) time.Duration {
	b.Helper()
	began := time.Now()
	for _, m := range f.members {
		err := atATime(adoptionParallel, numbers(0, count), func(i int) error {
			d := stock(i)
			d.Labels = map[string]string{"bare": fmt.Sprint(round)}
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			_, err = m.kube.AppsV1().Deployments(d.Namespace).Patch(b.Context(), d.Name, types.ApplyPatchType, text,
				metav1.PatchOptions{FieldManager: "bare", Force: ptr.To(true)})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// atATime does something with all, so many at a time.
func atATime(n int, all []int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(n)
	for _, i := range all {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func (f *fleet) policy() *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: adoptionNamespace, Name: "deployments-pp"},
		Spec: policyv1alpha1.PropagationSpec{
			ConflictResolution: policyv1alpha1.ConflictOverwrite,
			ResourceSelectors:  []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		},
	}
}

// applied waits until the policy says so of all.
func (f *fleet) applied(b *testing.B, count int) {
	b.Helper()
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		p := f.policy()
		if err := f.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if int(p.Status.Applied) != count {
			return fmt.Errorf("the policy says %+v", p.Status)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// takeOver asks for all to be taken over, and waits until the policy says so.
func (f *fleet) takeOver(b *testing.B, count int) time.Duration {
	b.Helper()
	began := time.Now()
	if err := f.Create(b.Context(), f.policy()); err != nil {
		b.Fatal(err)
	}
	f.applied(b, count)
	return time.Since(began)
}

// giveBack undoes all of it.
func (f *fleet) giveBack(b *testing.B) time.Duration {
	b.Helper()
	began := time.Now()
	p := f.policy()
	if err := f.Get(b.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		b.Fatal(err)
	}
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, annotationAborted, "true")
	if err := f.Patch(b.Context(), p, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == policyv1alpha1.ConditionReady && c.Reason == "Aborted" {
				return nil
			}
		}
		return fmt.Errorf("the policy says %+v", p.Status)
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Delete(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// books are what all API servers of a fleet have been asked for.
type books struct {
	hub     requests
	members []requests
	events  int
}

func (f *fleet) books(b *testing.B) books {
	b.Helper()
	read := func(s *site) requests {
		p, err := serverPage(b.Context(), s.kube)
		if err != nil {
			b.Fatal(err)
		}
		return requestsOf(p)
	}
	all := books{hub: read(f.site)}
	for _, m := range f.members {
		all.members = append(all.members, read(m))
	}
	var events corev1.EventList
	if err := f.List(b.Context(), &events); err != nil {
		b.Fatal(err)
	}
	all.events = len(events.Items)
	return all
}

// of are the writes of some resources.
func (r requests) of(resources ...string) float64 {
	var total float64
	for what, count := range r {
		for _, name := range resources {
			if resource, _, _ := strings.Cut(what.resource, "/"); resource == name {
				total += count
			}
		}
	}
	return total
}

// state of all Deployments and pods of a cluster, as far as a takeover must not touch it.
func (s *site) state(b *testing.B) string {
	b.Helper()
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&deployments, &pods} {
		if err := s.List(b.Context(), list, client.InNamespace(adoptionNamespace)); err != nil {
			b.Fatal(err)
		}
	}
	var text strings.Builder
	for _, d := range deployments.Items {
		fmt.Fprintln(&text, d.Name, d.UID, d.Generation)
	}
	for _, p := range pods.Items {
		fmt.Fprintln(&text, p.Name, p.UID)
	}
	return text.String()
}

// running waits until all Deployments of a cluster have their pod.
func (s *site) running(b *testing.B) {
	b.Helper()
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		var all appsv1.DeploymentList
		if err := s.List(ctx, &all, client.InNamespace(adoptionNamespace)); err != nil {
			return err
		}
		for _, d := range all.Items {
			if d.Status.AvailableReplicas != 1 {
				return fmt.Errorf("%s has no pod yet", d.Name)
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
