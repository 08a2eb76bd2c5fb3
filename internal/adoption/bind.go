package adoption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// What Works carry.
const (
	// LabelBinding has the UID of the binding that a Work was made for.
	LabelBinding = "fairlead.dev/binding"
	// AnnotationBinding has where that is.
	AnnotationBinding = "fairlead.dev/binding"
	// AnnotationClaim has which policy took the resource to the cluster.
	AnnotationClaim = "fairlead.dev/claim"
)

// The reasons of the conditions of a binding.
const (
	ReasonScheduled    passage.Code = "Success"
	ReasonNoCluster    passage.Code = "NoClusterFit"
	ReasonFullyApplied passage.Code = "FullyAppliedSuccess"
	ReasonNotApplied   passage.Code = "FullyAppliedFailed"
	ReasonApplying     passage.Code = "Applying"
)

// gather is how long the results of several clusters are waited for, so that they make one status.
const gather = 20 * time.Second

// binder makes the Works of a binding, and tells what became of them.
type binder struct {
	client client.Client
	// templates reads resources of the hub as they are right now.
	templates client.Reader
	// version is that of a resource, as far as it is known without asking; empty if it is not.
	version func(context.Context, templateKey) string
	done    ledger
	now     func() time.Time
}

// Reconcile brings one binding to its Works.
func (b *binder) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	binding, err := getBinding(ctx, b.client, request.Namespace, request.Name)
	if binding == nil || err != nil {
		return ctrl.Result{}, err
	}
	works, err := b.works(ctx, binding)
	if err != nil {
		return ctrl.Result{}, err
	}
	if binding.GetDeletionTimestamp() != nil {
		b.done.strike(binding.GetUID())
		return ctrl.Result{}, b.release(ctx, binding, works)
	}
	var wrong error
	if taken(binding) {
		var large *largeError
		var written map[string]*workv1alpha1.Work
		if written, wrong, err = b.dispatch(ctx, binding, works); errors.As(err, &large) {
			// Nothing becomes of it until it changes.
			return ctrl.Result{}, writeStatus(ctx, b.client, binding, large.status(binding, works, b.now()))
		} else if err != nil {
			return ctrl.Result{}, err
		}
		// The cache may have yet to hear of them, and would tell what became of those before.
		works = written
	}
	status, again := aggregate(binding, works, wrong, b.now())
	if again > 0 {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, writeStatus(ctx, b.client, binding, status)
}

// byBinding is the index of Works by the UID of their binding.
const byBinding = "binding"

func (b *binder) works(ctx context.Context, binding *binding) (map[string]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := b.client.List(ctx, &list, client.MatchingFields{byBinding: string(binding.GetUID())}); err != nil {
		return nil, fmt.Errorf("find the Works of %s: %w", binding, err)
	}
	works := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		if cluster, ok := clusterOf(list.Items[i].Namespace); ok {
			works[cluster] = &list.Items[i]
		}
	}
	return works, nil
}

// taken holds for a resource that a policy takes, or that something needs which one takes. What changes about any other stays
// on the hub.
func taken(binding *binding) bool {
	return claimOf(binding) != (Key{}) || len(binding.spec.RequiredBy) > 0
}

// targets are the clusters that a resource goes to, of itself and because something needs it there.
func targets(binding *binding) []workv1alpha2.TargetCluster {
	all := slices.Clone(binding.spec.Clusters)
	for _, r := range binding.spec.RequiredBy {
		for _, c := range r.Clusters {
			if !slices.ContainsFunc(all, func(t workv1alpha2.TargetCluster) bool { return t.Name == c.Name }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// share is what one cluster gets of a resource.
type share struct {
	cluster  string
	manifest *unstructured.Unstructured
}

// shares are what clusters get of a resource. The first error is what the resource says that means nothing.
func shares(binding *binding, template *unstructured.Unstructured) (all []share, wrong, err error) {
	resolution, wrong := resolve(binding.spec.ConflictResolution, template.GetAnnotations()[AnnotationConflictResolution])
	manifest, err := manifestOf(template, resolution)
	if err != nil {
		return nil, wrong, err
	}
	divided := binding.spec.Placement != nil && binding.spec.Placement.Divides() && replicasOf(manifest) >= 0
	for _, target := range targets(binding) {
		s := share{target.Name, manifest}
		if divided {
			s.manifest = manifest.DeepCopy()
			if err := unstructured.SetNestedField(s.manifest.Object, int64(target.Replicas), "spec", "replicas"); err != nil {
				return nil, wrong, err
			}
		}
		all = append(all, s)
	}
	return all, wrong, nil
}

// dispatch makes the Works what they should be, and returns them. The first error is what the template says that means
// nothing.
func (b *binder) dispatch(ctx context.Context, binding *binding, works map[string]*workv1alpha1.Work) (_ map[string]*workv1alpha1.Work, wrong, err error) {
	key := templateOf(binding)
	version := b.version(ctx, key)
	if wrong, found := b.done.find(binding, version, works); found {
		return works, wrong, nil
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(key.kind)
	if err := b.templates.Get(ctx, key.ObjectKey, template); err != nil {
		// The detector hears of it when it is gone.
		return works, nil, client.IgnoreNotFound(err)
	}
	all, wrong, err := shares(binding, template)
	if err != nil {
		return works, wrong, err
	}
	wanted, unwanted := map[string]*workv1alpha1.Work{}, maps.Clone(works)
	var errs []error
	for _, s := range all {
		delete(unwanted, s.cluster)
		work, err := b.put(ctx, binding, s.cluster, s.manifest, works[s.cluster])
		if tooLarge(err) {
			return works, wrong, &largeError{s.cluster, err}
		}
		errs = append(errs, err)
		wanted[s.cluster] = work
	}
	for _, work := range unwanted {
		last := will{preserve: staysBehind(binding, work)}
		errs = append(errs, b.carryOut(ctx, last, map[string]*workv1alpha1.Work{"": work}))
	}
	if err := errors.Join(errs...); err != nil {
		return works, wrong, err
	}
	if template.GetResourceVersion() == version {
		b.done.enter(binding, version, wanted, wrong)
	}
	return wanted, wrong, nil
}

// put makes one Work what it should be.
func (b *binder) put(ctx context.Context, binding *binding, cluster string, manifest *unstructured.Unstructured, have *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	if have != nil && !have.DeletionTimestamp.IsZero() {
		return have, nil
	}
	text, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, fmt.Errorf("describe %s %s: %w", manifest.GetKind(), nameOf(manifest), err)
	}
	spec := workv1alpha1.WorkSpec{
		Workload:                    workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: text}}}},
		PreserveResourcesOnDeletion: binding.spec.PreserveResourcesOnDeletion,
	}
	if s := binding.spec.Suspension; s != nil {
		spec.SuspendDispatching = s.Dispatching
	}
	labels := map[string]string{LabelBinding: string(binding.GetUID()), LabelWork: markOf(manifest)}
	annotations := map[string]string{AnnotationBinding: binding.path(), AnnotationClaim: claimOf(binding).String()}
	if have == nil {
		r := binding.spec.Resource
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: executionNamespace(cluster), Name: workName(Template{r.APIVersion, r.Kind, r.Namespace, r.Name, nil}),
				Labels: labels, Annotations: annotations, Finalizers: []string{FinalizerExecution},
			},
			Spec: spec,
		}
		err := b.client.Create(ctx, work, client.FieldOwner(FieldOwner))
		if !apierrors.IsAlreadyExists(err) {
			return work, err
		}
		// The cache has yet to hear of it, or it was made for a binding that is no more.
		have = &workv1alpha1.Work{}
		if err := b.templates.Get(ctx, client.ObjectKeyFromObject(work), have); err != nil {
			return nil, err
		}
	}
	work := have.DeepCopy()
	work.Spec, work.Labels, work.Annotations = spec, joined(have.Labels, nil, labels), joined(have.Annotations, nil, annotations)
	if sameSpec(have.Spec, spec) && maps.Equal(have.Labels, work.Labels) && maps.Equal(have.Annotations, work.Annotations) {
		return have, nil
	}
	return work, b.client.Update(ctx, work, client.FieldOwner(FieldOwner))
}

// sameSpec compares what manifests say, however they are written.
func sameSpec(a, b workv1alpha1.WorkSpec) bool {
	parsed := func(s workv1alpha1.WorkSpec) []any {
		var all []any
		for _, m := range s.Workload.Manifests {
			var object any
			_ = json.Unmarshal(m.Raw, &object)
			all = append(all, object)
		}
		return all
	}
	return equality.Semantic.DeepEqual(parsed(a), parsed(b)) && equality.Semantic.DeepEqual(a.SuspendDispatching, b.SuspendDispatching) &&
		equality.Semantic.DeepEqual(a.PreserveResourcesOnDeletion, b.PreserveResourcesOnDeletion)
}

// FinalizerBinding keeps a binding until its Works are gone.
const FinalizerBinding = "karmada.io/binding-controller"

// aggregate tells what became of a resource in all of its clusters, and after how long it can, if not now.
func aggregate(binding *binding, works map[string]*workv1alpha1.Work, wrong error, now time.Time) (workv1alpha2.ResourceBindingStatus, time.Duration) {
	status := *binding.status.DeepCopy()
	status.ObservedGeneration = binding.GetGeneration()
	status.AggregatedStatus = nil
	tell := func(kind string, is metav1.ConditionStatus, reason passage.Reason) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: string(reason.Code), Message: reason.Message,
			ObservedGeneration: binding.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
		})
	}
	clusters := targets(binding)
	if len(clusters) == 0 {
		reason := passage.Because(ReasonNoCluster, "no cluster that has joined is selected by spec.placement of its policy")
		tell(workv1alpha2.ConditionScheduled, metav1.ConditionFalse, reason)
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, reason)
		return status, 0
	}
	tell(workv1alpha2.ConditionScheduled, metav1.ConditionTrue, passage.Because(ReasonScheduled, "it goes to %d of the clusters that have joined", len(clusters)))
	applied, waiting := 0, 0
	var first *metav1.Condition
	for _, target := range clusters {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: target.Name, Health: workv1alpha2.ResourceUnknown}
		work := works[target.Name]
		var condition *metav1.Condition
		if work != nil {
			condition = meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
		}
		switch {
		case condition == nil || condition.ObservedGeneration < work.Generation:
			waiting++
			item.AppliedMessage = yetToWrite(target.Name)
		case condition.Status == metav1.ConditionTrue:
			applied++
			item.Applied = true
		default:
			item.AppliedMessage = condition.Message
			if first == nil {
				first = condition
			}
		}
		if work != nil && len(work.Status.ManifestStatuses) > 0 {
			said := work.Status.ManifestStatuses[0]
			item.Status, item.Health = said.Status, workv1alpha2.ResourceHealth(said.Health)
		}
		status.AggregatedStatus = append(status.AggregatedStatus, item)
	}
	if left := gather - now.Sub(binding.GetCreationTimestamp().Time); waiting > 0 && left > 0 {
		return status, left
	}
	note := ""
	if wrong != nil {
		note = "; " + wrong.Error()
	}
	switch total := len(clusters); {
	case applied == total:
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, passage.Because(ReasonFullyApplied, "%s it%s", allRun(clusters), note))
	case first != nil:
		code := ReasonNotApplied
		if reason := passage.Code(first.Reason); reason == ReasonConflict || reason == ReasonSuspended {
			code = reason
		}
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, passage.Because(code, "%d of %d clusters run it; %s%s", applied, total, first.Message, note))
	default:
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, passage.Because(ReasonApplying, "%d of %d clusters run it%s", applied, total, note))
	}
	return status, 0
}

func allRun(clusters []workv1alpha2.TargetCluster) string {
	if len(clusters) == 1 {
		return "cluster " + clusters[0].Name + " runs"
	}
	return fmt.Sprintf("all %d clusters run", len(clusters))
}
