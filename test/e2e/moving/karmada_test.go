package moving_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// policiesWithoutStatus are the CRDs of policies as Karmada installs them.
func policiesWithoutStatus(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Group == policyv1alpha1.GroupVersion.Group {
			crd.Spec.Versions[i].Subresources = nil
		}
	}
}

// TestMoveFromKarmada: a Deployment that Karmada has propagated to a member.
func TestMoveFromKarmada(t *testing.T) {
	t.Parallel()
	site := newMember(t)
	site.apply(t, "karmada-member.yaml", "karmada-controller-manager")
	site.serving(t, "shop/nginx")

	w := newWorld(t, "hub", "adoption")
	w.installCRDs(t, "adoption", "kubectl-client-side-apply", policiesWithoutStatus)
	set := strings.NewReplacer("TOKEN", site.token(t), "ENDPOINT", site.Config().Host,
		"CABUNDLE", fmt.Sprintf("%q", site.Config().CAData)).Replace(read(t, "karmada.yaml"))
	w.applyText(t, []byte(set), "karmada-controller-manager")

	m := move{world: w, passage: "adoption", system: "Karmada control plane", other: otherController{
		namespace: "karmada-system", seen: "Lease karmada-system/karmada-controller-manager is renewed by karmada-controller-manager-0",
		way: "stop karmada-controller-manager-0", stop: w.karmadaStops,
	}, webhooks: "karmada-webhook.yaml", guarded: &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nginx"}}}
	before := site.running(t, "")
	m.holdsBeside(t)
	unchanged(t, before, site.running(t, ""))
	m.plans(t, "1 to update. No pod restarts.", "pp", "nginx", "-n", "shop")
	m.takesOver(t)
	m.applied(t, withRoute...)
	unchanged(t, before, site.running(t, ""))
	m.checkSays(t, "ok")

	// The next change of the template.
	template := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nginx"}}
	harness.Change(t, w, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1.28" })
	harness.WaitFor(t, site, &appsv1.Deployment{ObjectMeta: template.ObjectMeta}, func(d *appsv1.Deployment) error {
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.28" {
			return fmt.Errorf("it has %s", image)
		}
		return nil
	})
	m.applied(t, withRoute...)

	// A cluster is taken out of the policy of a custom kind: one Work alone has the object, and nothing creates it again.
	harness.Change(t, w, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "routes"}}, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity.ClusterNames = []string{"none"}
	})
	m.applied(t, karmadaWorks...)
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"})
	if err := site.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, route); !apierrors.IsNotFound(err) {
		t.Errorf("the VirtualService in the member: %v, %v", route.GetDeletionTimestamp(), err)
	}

	// Back: Karmada finds its Work, and its marks in the member.
	site.serving(t, "shop/nginx")
	before = site.running(t, "")
	m.uninstalls(t)
	unchanged(t, before, site.running(t, ""))
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-member1", Name: "nginx-687f7fb96f"}}
	live := &appsv1.Deployment{ObjectMeta: template.ObjectMeta}
	if err := errors.Join(w.Get(t.Context(), client.ObjectKeyFromObject(work), work), site.Get(t.Context(), client.ObjectKeyFromObject(live), live)); err != nil {
		t.Fatal(err)
	}
	for _, object := range []metav1.Object{work, live} {
		if object.GetLabels()["work.karmada.io/permanent-id"] != "44444444-4444-4444-8444-444444444444" || object.GetAnnotations()["resourcebinding.karmada.io/name"] != "nginx-deployment" || len(object.GetFinalizers()) > 0 {
			t.Errorf("%s has labels %v, annotations %v and finalizers %v", object.GetName(), object.GetLabels(), object.GetAnnotations(), object.GetFinalizers())
		}
	}
	if live.Annotations["work.karmada.io/name"] != work.Name || live.Annotations["work.karmada.io/namespace"] != work.Namespace {
		t.Errorf("the Deployment in the member has annotations %v", live.Annotations)
	}
}

// karmadaWorks are the Works that Karmada has made, and withRoute those before the VirtualService leaves the member.
var (
	karmadaWorks = []string{"nginx-687f7fb96f", "readers-5d6c7b8a9f", "shop-76b5c5f7f9", "shop.readers-7d5f9c8b6b"}
	withRoute    = append(slices.Clone(karmadaWorks), "web-6c9d8f7b5a")
)

// newMember is a cluster that is a member of Karmada.
func newMember(t *testing.T) world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{KeepNamespaces: true})
	admin, err := harness.NewAdminClient(c)
	if err != nil {
		t.Fatal(err)
	}
	return world{&harness.World{Cluster: c, WithWatch: admin}}
}

// token is that of Karmada in the member.
func (w world) token(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-member1"}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(24 * 3600))}}
	if err := w.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// karmadaStops ends the renewal of Karmada's Leases.
func (w world) karmadaStops(t *testing.T) {
	t.Helper()
	for _, name := range []string{"karmada-controller-manager", "karmada-scheduler"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: name}}
		harness.Change(t, w, lease, func(l *coordinationv1.Lease) {
			l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = ptr.To[int32](15), ptr.To(metav1.NewMicroTime(time.Now().Add(-24*time.Hour)))
		})
	}
}

// applied waits until Fairlead reports that templates are applied, through the bindings and Works that Karmada has made.
func (m move) applied(t *testing.T, works ...string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		list := &workv1alpha1.WorkList{}
		if err := m.List(ctx, list); err != nil {
			return err
		}
		var names []string
		for _, work := range list.Items {
			names = append(names, work.Name)
			if work.Labels["work.karmada.io/permanent-id"] == "" || !writtenBy(&work, "fairlead/adoption") {
				return fmt.Errorf("Work %s is not Fairlead's", work.Name)
			}
			if err := isTrue(work.Status.Conditions, workv1alpha1.ConditionApplied); err != nil {
				return fmt.Errorf("Work %s: %w", work.Name, err)
			}
		}
		if slices.Sort(names); !slices.Equal(names, works) {
			return fmt.Errorf("the Works are %v", names)
		}
		return nil
	})
	for _, name := range []string{"readers-clusterrole", "shop.readers-clusterrole"} {
		harness.WaitFor(t, m, &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(b *workv1alpha2.ClusterResourceBinding) error {
			if !slices.Equal(b.Finalizers, []string{"karmada.io/binding-controller"}) {
				return fmt.Errorf("finalizers %v", b.Finalizers)
			}
			return isTrue(b.Status.Conditions, workv1alpha2.ConditionFullyApplied)
		})
	}
	bindings, ofCluster := &workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}
	if err := errors.Join(m.List(t.Context(), bindings), m.List(t.Context(), ofCluster)); err != nil {
		t.Fatal(err)
	}
	if len(bindings.Items) != 2 || len(ofCluster.Items) != 2 {
		t.Errorf("there are %d ResourceBindings and %d ClusterResourceBindings, and Karmada has made 2 of each", len(bindings.Items), len(ofCluster.Items))
	}
	harness.WaitFor(t, m, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nginx-deployment"}}, func(b *workv1alpha2.ResourceBinding) error {
		if !writtenBy(b, "fairlead/adoption") {
			return errors.New("not written by Fairlead")
		}
		return isTrue(b.Status.Conditions, workv1alpha2.ConditionFullyApplied)
	})
	for _, object := range []interface {
		metav1.Object
	}{
		harness.WaitFor(t, m, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nginx"}}, func(p *policyv1alpha1.PropagationPolicy) error {
			if p.Status.ObservedGeneration != p.Generation {
				return errors.New("not reported")
			}
			return nil
		}),
		harness.WaitFor(t, m, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}}, func(c *clusterv1alpha1.Cluster) error {
			if !writtenBy(c, "fairlead/adoption") {
				return errors.New("not written by Fairlead")
			}
			return isTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
		}),
	} {
		if slices.ContainsFunc(object.GetFinalizers(), func(name string) bool { return strings.HasPrefix(name, "karmada.io/") }) {
			t.Errorf("%s has the finalizers %v, and nobody would remove them", object.GetName(), object.GetFinalizers())
		}
	}
}

func isTrue(conditions []metav1.Condition, kind string) error {
	if !meta.IsStatusConditionTrue(conditions, kind) {
		return fmt.Errorf("%s is not true: %s", kind, harness.DescribeConditions(conditions))
	}
	return nil
}
