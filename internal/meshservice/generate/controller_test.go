package generate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

func TestGenerationStatus(t *testing.T) {
	for name, c := range map[string]struct {
		counts generationStatus
		mode   kumav1alpha1.Mode
		want   string
	}{
		"disabled":       {generationStatus{total: 1}, kumav1alpha1.ModeDisabled, "False Disabled meshServices is Disabled: no MeshService is generated"},
		"to be disabled": {generationStatus{total: 1, generated: 1}, kumav1alpha1.ModeDisabled, "False Disabled meshServices is Disabled: 1 generated MeshService to delete"},
		"stranded": {generationStatus{total: 3, generated: 3, stranded: []string{"shop/Deployment/cart"}}, kumav1alpha1.ModeExclusive,
			"False ConsumersStranded 1 consumer would reach nothing in mode Exclusive: shop/Deployment/cart; list MeshServices in reachableBackendRefs of the Dataplane (annotation kuma.io/reachable-backends of the pod), or if it lists tags only, switch it with `fairlead migrate mesh` in mode ReachableBackendRefs"},
		"generated": {generationStatus{total: 3, generated: 2}, kumav1alpha1.ModeExclusive, "True Generated 3 MeshServices, 2 of them generated"},
		"somebody's": {generationStatus{total: 3, generated: 2, blocked: []string{"shop/cart"}}, kumav1alpha1.ModeEverywhere,
			"True Unmanaged 3 MeshServices, 2 of them generated; 1 MeshService not managed by Fairlead and left out: shop/cart; delete those that Fairlead should generate"},
		"somebody's, while generating": {generationStatus{blocked: []string{"shop/cart"}, pending: []string{"shop/stock"}}, kumav1alpha1.ModeExclusive,
			"False Generating 1 MeshService not generated yet: shop/stock; 1 MeshService not managed by Fairlead and left out: shop/cart; delete those that Fairlead should generate"},
		"generating": {generationStatus{total: 2, generated: 2, pending: []string{"shop/stock", "shop/cart"}}, kumav1alpha1.ModeEverywhere,
			"False Generating 2 MeshServices not generated yet: shop/cart, shop/stock"},
		"disabled meanwhile": {generationStatus{pending: []string{"shop/cart"}}, kumav1alpha1.ModeDisabled, "False Disabled meshServices is Disabled: no MeshService is generated"},
		"taken over": {generationStatus{total: 2, generated: 1, takenOver: map[string]bool{"shop/cart": true}}, kumav1alpha1.ModeEverywhere,
			"True Generated 2 MeshServices, 1 of them generated; 1 MeshService taken over from another control plane and left unchanged, because Fairlead does not generate the same: shop/cart; delete those without callers"},
		"taken over, and disabled": {generationStatus{total: 1, takenOver: map[string]bool{"shop/cart": true}}, kumav1alpha1.ModeDisabled,
			"False Disabled meshServices is Disabled: no MeshService is generated; 1 MeshService taken over from another control plane and left unchanged, because meshServices is Disabled: shop/cart"},
		"no name, while generating": {generationStatus{nameless: []string{"a_a"}, pending: []string{"shop/stock"}}, kumav1alpha1.ModeEverywhere,
			"False Generating 1 MeshService not generated yet: shop/stock; 1 value of kuma.io/service not valid as a MeshService name: a_a; use at most 63 lower-case letters, digits and '-'"},
		"no name": {generationStatus{nameless: strings.Split("a_a b_b c_c d_d e_e f_f g_g", " ")}, kumav1alpha1.ModeEverywhere,
			"False InvalidName 7 values of kuma.io/service not valid as a MeshService name: a_a, b_b, c_c, d_d, e_e and 2 more; use at most 63 lower-case letters, digits and '-'"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.counts.condition(c.mode)
			if text := string(got.Status) + " " + got.Reason + " " + got.Message; text != c.want {
				t.Errorf("it says %q, want %q", text, c.want)
			}
		})
	}
}

// Tags are taken away when nothing is missing, and not given back for what is new.
func TestInForce(t *testing.T) {
	const disabled, exclusive = kumav1alpha1.ModeDisabled, kumav1alpha1.ModeExclusive
	const everywhere, backends = kumav1alpha1.ModeEverywhere, kumav1alpha1.ModeReachableBackendRefs
	missing, theirs, odd := generationStatus{pending: []string{"a"}}, generationStatus{blocked: []string{"a"}}, generationStatus{nameless: []string{"a_a"}}
	alone := generationStatus{stranded: []string{"shop/Deployment/cart"}}
	for name, c := range map[string]struct {
		counts   generationStatus
		asked    kumav1alpha1.Mode
		was      kumav1alpha1.Mode
		observed int64
		want     kumav1alpha1.Mode
	}{
		"from nothing":              {missing, exclusive, "", 0, everywhere},
		"while some are missing":    {missing, exclusive, everywhere, 2, everywhere},
		"once all are there":        {generationStatus{}, exclusive, everywhere, 2, exclusive},
		"with a new Service":        {missing, exclusive, exclusive, 2, exclusive},
		"other edits":               {generationStatus{}, exclusive, exclusive, 1, exclusive},
		"other edits, new Service":  {missing, exclusive, exclusive, 1, exclusive},
		"where somebody's is":       {theirs, exclusive, everywhere, 2, exclusive},
		"where somebody's came":     {theirs, exclusive, exclusive, 1, exclusive},
		"with what has no name":     {odd, exclusive, everywhere, 2, everywhere},
		"with a stranded consumer":  {alone, exclusive, everywhere, 2, everywhere},
		"with one, from nothing":    {alone, exclusive, "", 0, everywhere},
		"modes that leave the tags": {missing, backends, exclusive, 1, backends},
		"out of Disabled":           {missing, backends, disabled, 1, disabled},
		"out of Disabled, far":      {missing, exclusive, disabled, 1, disabled},
		"out of it with all":        {generationStatus{}, backends, disabled, 1, backends},
		"out of it with somebody's": {theirs, exclusive, disabled, 1, exclusive},
		"back to Disabled":          {missing, disabled, everywhere, 1, disabled},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: c.asked}
			mesh.Status.Mode, mesh.Status.ObservedGeneration = c.was, c.observed
			if read := mesh.ModeInForce(); c.was == exclusive && read != c.asked {
				t.Errorf("until the status is written, %s is in force, want %s", read, c.asked)
			}
			got := c.counts.nextMode(mesh, false)
			if got != c.want {
				t.Errorf("%s is in force, want %s", got, c.want)
			}
			mesh.Status.Mode, mesh.Status.ObservedGeneration = got, mesh.Generation
			if read := mesh.ModeInForce(); read != got {
				t.Errorf("%s is in force, and read as %s", got, read)
			}
		})
	}
	t.Run("out of Disabled, with one that never comes", func(t *testing.T) {
		mesh := &kumav1alpha1.Mesh{Spec: kumav1alpha1.MeshSpec{MeshServices: &kumav1alpha1.MeshServices{Mode: backends}}}
		mesh.Status.Mode = disabled
		if got := missing.nextMode(mesh, true); got != backends {
			t.Errorf("%s is in force, want %s", got, backends)
		}
	})
}

// A mesh waits as long as MeshServices come, and no longer.
func TestWaits(t *testing.T) {
	w, now := stallDetector{}, time.Unix(0, 0)
	for _, step := range []struct {
		after   time.Duration
		lacking int
		stalled bool
		again   time.Duration
	}{
		{0, 3, false, stallTimeout},
		{stallTimeout - 1, 3, false, 1},
		{1, 2, false, stallTimeout},
		{stallTimeout, 2, true, 0},
		{time.Hour, 2, true, 0},
		{time.Hour, 0, false, 0},
		{time.Hour, 2, false, stallTimeout},
	} {
		now = now.Add(step.after)
		if stalled, again := w.stalled("default", step.lacking, now); stalled != step.stalled || again != step.again {
			t.Errorf("at %s, lacking %d: %v, again in %s", now.UTC(), step.lacking, stalled, again)
		}
	}
	if len(w) != 1 {
		t.Errorf("%v are remembered", w)
	}
}

// What should be generated is there once it was made for the same, and has been given its addresses.
func TestCompare(t *testing.T) {
	where := desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}
	namespace := &metav1.ObjectMeta{Name: "shop", Labels: map[string]string{kumav1alpha1.LabelSidecarInjection: "enabled"}}
	wanted := func(service string) *kumav1alpha1.MeshService {
		return desired.MeshServicesOf(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: "shop"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": service}, Ports: []corev1.ServicePort{{Port: 80}}},
		}, namespace, nil, nil, where)[0]
	}
	const pending, blocked = "pending", "blocked"
	for name, c := range map[string]struct {
		change func(*kumav1alpha1.MeshService)
		want   string
	}{
		"there":           {func(*kumav1alpha1.MeshService) {}, ""},
		"without address": {func(s *kumav1alpha1.MeshService) { s.Status.ObservedGeneration = 0 }, pending},
		"on its way out":  {func(s *kumav1alpha1.MeshService) { s.DeletionTimestamp = &metav1.Time{} }, pending},
		"kept by somebody": {func(s *kumav1alpha1.MeshService) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{}, []string{"example.org/keep"}
		}, blocked},
		"on its way out after its dependents": {func(s *kumav1alpha1.MeshService) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{}, []string{metav1.FinalizerDeleteDependents}
		}, pending},
		"in another mesh": {func(s *kumav1alpha1.MeshService) { s.Labels[kumav1alpha1.LabelMesh] = "other" }, pending},
		"somebody's":      {func(s *kumav1alpha1.MeshService) { s.OwnerReferences = nil }, blocked},
		"another's":       {func(s *kumav1alpha1.MeshService) { s.OwnerReferences[0].Name = "stock" }, blocked},
		"not there":       {nil, pending},
	} {
		t.Run(name, func(t *testing.T) {
			var there *kumav1alpha1.MeshService
			if c.change != nil {
				there = wanted("cart")
				desired.RecordLabels(there)
				there.Status.ObservedGeneration = 1
				c.change(there)
			}
			var got, want generationStatus
			got.compare(wanted("cart"), there, where)
			switch c.want {
			case pending:
				want.pending = []string{"shop/cart"}
			case blocked:
				want.blocked = []string{"shop/cart"}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(generationStatus{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAddressedTags(t *testing.T) {
	ranges := desired.Ranges{}.OrDefaults()
	for reason, outcome := range map[string]desired.Allocation{
		kumav1alpha1.ReasonAllocated: {}, kumav1alpha1.ReasonRangeExhausted: {Unallocated: []string{"a"}}, ReasonInvalidValue: {Invalid: []string{"a b"}},
		kumav1alpha1.ReasonShareExhausted: {OverShare: []string{"a"}},
	} {
		if got := vipsCondition(outcome, ranges, 1); got.Reason != reason || (got.Status == metav1.ConditionTrue) != (reason == kumav1alpha1.ReasonAllocated) {
			t.Errorf("%+v is told as %+v", outcome, got)
		}
	}
}

// What many have in common is no good to find something by.
func TestOnePair(t *testing.T) {
	for want, selector := range map[string]map[string]string{
		"m|k8s.kuma.io/service-name=cart": {kumav1alpha1.LabelKubernetesNamespace: "shop", desired.TagServiceName: "cart"},
		"m|kuma.io/service=cart":          {kumav1alpha1.TagService: "cart", kumav1alpha1.TagProtocol: "http", kumav1alpha1.TagZone: "east"},
		"m|kuma.io/zone=east":             {kumav1alpha1.TagZone: "east"},
		"m|app=cart":                      {"app": "cart", "tier": "back"},
	} {
		if diff := cmp.Diff([]string{want}, mostSelectivePair("m", selector)); diff != "" {
			t.Error(diff)
		}
	}
	if got := mostSelectivePair("m", nil); got != nil {
		t.Errorf("nothing is found by %v", got)
	}
}

// A pod is kept with all that its Dataplane is made of.
func TestEssentials(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cart-0", Namespace: "shop", UID: "u", Labels: map[string]string{"app": "cart"},
			Annotations: map[string]string{kumav1alpha1.AnnotationReachableServices: "a", "note": "long"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cart", Image: "cart", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}, {Name: "x"}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.1", Phase: corev1.PodRunning, Message: "long", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: "long"},
		}},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "cart"}, Ports: []corev1.ServicePort{{Port: 8080}}},
	}
	namespace := &metav1.ObjectMeta{Name: "shop", Labels: map[string]string{kumav1alpha1.LabelSidecarInjection: "enabled"}}
	kept, err := stripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	dataplane := func(pod *corev1.Pod) *kumav1alpha1.Dataplane {
		d, err := desired.DataplaneOf(pod, namespace, []*corev1.Service{service}, "Pod/cart-0", nil, desired.ZoneInfo{Zone: "east"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if diff := cmp.Diff(dataplane(pod), dataplane(kept.(*corev1.Pod))); diff != "" {
		t.Error(diff)
	}
	if text := kept.(*corev1.Pod).String(); strings.Contains(text, "long") {
		t.Errorf("too much is kept: %s", text)
	}
}

// The status of a policy is not applied to a policy that has changed since it was read: the policy is requeued.
func TestSaysOfPolicyWithLock(t *testing.T) {
	policy := &kumav1alpha1.MeshTimeout{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop", ResourceVersion: "7"}}
	sent := &patched{err: apierrors.NewConflict(schema.GroupResource{Resource: "meshtimeouts"}, "cart", nil)}
	r := &reconciler{client: sent}
	result, err := kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, errors.Join(nil, r.applyPolicyStatus(ctx, policy, resolvedCondition(nil, kumav1alpha1.ModeEverywhere)))
	})}.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("a conflict is %+v, %v", result, err)
	}
	if !strings.Contains(sent.data, `"resourceVersion":"7"`) {
		t.Errorf("the status would be applied to a newer policy: %s", sent.data)
	}
}

// patched keeps the status that is applied, and refuses it.
type patched struct {
	client.Client
	data string
	err  error
}

func (p *patched) Status() client.SubResourceWriter { return patchedStatus{of: p} }

type patchedStatus struct {
	client.SubResourceWriter
	of *patched
}

func (p patchedStatus) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	data, err := json.Marshal(configuration)
	p.of.data = string(data)
	return errors.Join(err, p.of.err)
}

// What was said is not said again, but of another object of that name.
func TestMemory(t *testing.T) {
	var m kube.EventDedup[eventSubject]
	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "one"}}
	other := one.DeepCopy()
	other.UID = "other"
	for i, c := range []struct {
		pod  *corev1.Pod
		text string
		news bool
	}{{one, "", false}, {one, "a", true}, {one, "a", false}, {one, "b", true}, {other, "b", true}, {other, "", false}, {other, "b", true}} {
		if m.IsNew(subjectOf(c.pod), c.text) != c.news {
			t.Errorf("%d: %v", i, !c.news)
		}
	}
	if m.Forget(isAbout("Pod", client.ObjectKeyFromObject(one))); !m.IsNew(subjectOf(other), "b") {
		t.Error("an event about a deleted pod is not forgotten")
	}
}
