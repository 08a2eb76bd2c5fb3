package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/binding"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/passage"
)

// simulator reads the hub and the clusters, and writes nothing.
type simulator struct {
	id    string
	works map[client.ObjectKey]*workv1alpha1.Work
	// bound are the same, by namespace and by the path of their binding.
	bound    map[client.ObjectKey]*workv1alpha1.Work
	clusters map[string]*clusterv1alpha1.Cluster
	members  *member.Clients
}

// Predict is what the operator would do for a policy, by its own decisions, with a dry run of every write in the clusters. Proposed
// are templates that are treated as if the hub had them.
func Predict(ctx context.Context, hub client.Reader, policy *policy.Policy, proposed ...*unstructured.Unstructured) (Forecast, error) {
	f := Forecast{Subject: policy.Object(), Hold: policy.Hold()}
	if f.Obstacles = unsupportedSteps(policy); len(f.Obstacles) > 0 {
		return f, nil
	}
	v, err := observeHub(ctx, hub, policy)
	if err != nil {
		return f, err
	}
	for _, p := range proposed {
		v.proposed[model.KeyOf(p)] = p
	}
	planned, elsewhere, err := v.planBindings(ctx, hub, policy)
	if err != nil {
		return f, err
	}
	f.Elsewhere = elsewhere
	s, err := newSimulator(ctx, hub, v.clusters)
	if err != nil {
		return f, err
	}
	if err := f.predict(ctx, s, planned); err != nil {
		return f, err
	}
	f.Notes = append(f.Notes, v.removedNotes(planned)...)
	f.Obstacles = append(f.Obstacles, selectorSteps(policy)...)
	f.Obstacles = append(f.Obstacles, v.placementSteps(policy)...)
	if s := policy.Spec.Suspension; s != nil && s.DispatchingOnClusters != nil && f.Hold == nil {
		for _, cluster := range s.DispatchingOnClusters.ClusterNames {
			f.Notes = append(f.Notes, fmt.Sprintf("nothing is written to cluster %s while spec.suspension.dispatchingOnClusters of the policy names it", cluster))
		}
	}
	slices.Sort(f.Notes)
	return f, nil
}

func newSimulator(ctx context.Context, hub client.Reader, clusters map[string]*clusterv1alpha1.Cluster) (*simulator, error) {
	f := &simulator{works: map[client.ObjectKey]*workv1alpha1.Work{}, bound: map[client.ObjectKey]*workv1alpha1.Work{}, clusters: clusters, members: member.NewCommandClients(hub)}
	var err error
	if f.id, err = model.HubID(ctx, hub); err != nil {
		return nil, err
	}
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works); err != nil {
		return nil, fmt.Errorf("list Works: %w", err)
	}
	for i := range works.Items {
		if !works.Items[i].DeletionTimestamp.IsZero() {
			// The operator creates it again when it is gone.
			continue
		}
		w := &works.Items[i]
		f.works[client.ObjectKeyFromObject(w)] = w
		if path := model.BindingIndexValues(w)[0]; path != "" {
			f.bound[client.ObjectKey{Namespace: w.Namespace, Name: path}] = w
		}
	}
	return f, nil
}

// predict asks all clusters concurrently, and for a few objects at once in each.
func (f *Forecast) predict(ctx context.Context, simulator *simulator, planned []plannedBinding) error {
	byCluster := map[string][]binding.Step{}
	var deletions []laterDeletion
	// blocked are objects that are not brought to their clusters for now.
	blocked := map[passage.Object]bool{}
	for _, p := range planned {
		d := binding.Decide(binding.Observed{Binding: p.binding, Template: p.template, Works: simulator.worksOf(p)})
		if d.Err != nil {
			return d.Err
		}
		if d.AnnotationErr != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s %s: %v", p.template.GetKind(), model.NameOf(p.template), d.AnnotationErr))
		}
		if note := model.UntoleratedNote(p.binding); note != "" {
			f.Notes = append(f.Notes, fmt.Sprintf("%s %s: %s", p.template.GetKind(), model.NameOf(p.template), note))
		}
		if model.IsDeferred(p.binding) {
			f.Deferred = append(f.Deferred, Deferral{model.ObjectOf(p.template), *model.DeferredReason(p.binding)})
		}
		if reason := cmp.Or(d.Refused, model.NoClusterReason(p.binding)); reason != nil && reason.Code != model.ReasonDeferred {
			f.Obstacles = append(f.Obstacles, passage.Step{
				Object: model.ObjectOf(p.template), Action: model.ActionBind, State: passage.Failed,
				Reason: passage.Because(reason.Code, "%s %s is not placed: %s", p.template.GetKind(), model.NameOf(p.template), reason.Message),
			})
		}
		for _, step := range d.Steps {
			cluster := step.Object.Cluster
			switch {
			case step.Deletion != nil:
				deletions = append(deletions, laterDeletion{p.template, step})
				continue
			case step.Action == model.ActionDelete:
				f.Outcomes = append(f.Outcomes, predictDeletion(p.template, step, simulator.clusters[cluster]))
				continue
			case f.Hold == nil && ptr.Deref(step.Work.Spec.SuspendDispatching, false):
				blocked[objectIn(p.template, cluster)] = true
			}
			byCluster[cluster] = append(byCluster[cluster], step)
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	for cluster, steps := range byCluster {
		group.Go(func() error {
			all := simulator.predictCluster(ctx, cluster, steps)
			mu.Lock()
			defer mu.Unlock()
			f.Outcomes = append(f.Outcomes, all...)
			return nil
		})
	}
	_ = group.Wait()
	for _, o := range f.Outcomes {
		blocked[o.Object] = blocked[o.Object] || o.Failed
	}
	for _, d := range deletions {
		f.Outcomes = append(f.Outcomes, d.predict(simulator.clusters[d.step.Object.Cluster], blocked))
	}
	simulator.addCascades(ctx, f.Outcomes, cascading(planned))
	slices.SortFunc(f.Outcomes, func(a, b Outcome) int { return compareObjects(a.Object, b.Object) })
	return context.Cause(ctx)
}

// worksOf a binding, by cluster.
func (f *simulator) worksOf(p plannedBinding) map[string]*workv1alpha1.Work {
	all, t := map[string]*workv1alpha1.Work{}, model.TemplateOf(p.template)
	for cluster := range f.clusters {
		namespace := model.ExecutionNamespace(cluster)
		// One that Karmada has made for the binding has another name.
		inherited := f.bound[client.ObjectKey{Namespace: namespace, Name: p.binding.Path()}]
		if w := cmp.Or(f.works[client.ObjectKey{Namespace: namespace, Name: model.WorkName(t)}], inherited); w != nil {
			all[cluster] = w
		}
	}
	return all
}

// predictDeletion is what becomes of an object in a cluster that its template no longer goes to.
func predictDeletion(template *unstructured.Unstructured, step binding.Step, cluster *clusterv1alpha1.Cluster) Outcome {
	o := Outcome{Object: objectIn(template, cluster.Name), Action: work.DeletionFor(step.Work, cluster, nil), Reason: step.Reason}
	if cluster.DeletionTimestamp != nil {
		o.Reason = passage.Because(model.ReasonLeaving, "cluster %s is leaving the hub", cluster.Name)
	}
	o.Pods = podsOfWork(step.Work)
	o.Deleted = o.Action == model.ActionDelete && o.Pods > 0
	return o
}

// laterDeletion is a step of a template that keeps an object for now.
type laterDeletion struct {
	template *unstructured.Unstructured
	step     binding.Step
}

// predict what becomes of the object: it stays if the template cannot be applied in a cluster that is awaited.
func (d laterDeletion) predict(cluster *clusterv1alpha1.Cluster, blocked map[passage.Object]bool) Outcome {
	isBlocked := func(awaited string) bool { return blocked[objectIn(d.template, awaited)] }
	if cluster.DeletionTimestamp == nil && slices.ContainsFunc(d.step.Deletion.Awaited, isBlocked) {
		o := Outcome{Object: objectIn(d.template, cluster.Name), Action: model.ActionKeep, Reason: d.step.Reason}
		o.Pods = podsOfWork(d.step.Work)
		return o
	}
	return predictDeletion(d.template, d.step.Deletion.Step, cluster)
}

// podsOfWork are the pods of the objects of a Work.
func podsOfWork(work *workv1alpha1.Work) int64 {
	var all int64
	for _, raw := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if manifest.UnmarshalJSON(raw.Raw) == nil {
			pods, _ := podsOf(manifest)
			all += pods
		}
	}
	return all
}

func objectIn(o *unstructured.Unstructured, cluster string) passage.Object {
	object := model.ObjectOf(o)
	object.Cluster = cluster
	return object
}

// predictCluster predicts all objects of one cluster.
func (f *simulator) predictCluster(ctx context.Context, cluster string, steps []binding.Step) []Outcome {
	outcomes := make([]Outcome, len(steps))
	m, unreachable := f.members.ConnectForCommand(ctx, f.clusters[cluster])
	if unreachable == nil {
		defer f.members.Disconnect(cluster)
	}
	var group errgroup.Group
	group.SetLimit(model.MaxConcurrent)
	for i, step := range steps {
		w := step.Work
		object, err := step.Manifest()
		if err != nil {
			outcomes[i] = Outcome{Action: model.ActionUnknown, Failed: true, Reason: passage.Because(model.ReasonFailed, "read Work %s/%s: %v", w.Namespace, w.Name, err)}
			continue
		}
		if unreachable != nil {
			outcomes[i] = Outcome{
				Object: objectIn(object, cluster), Action: model.ActionUnknown, Failed: true, Reason: passage.Because(model.ReasonUnreachable, "%v", unreachable),
			}
			continue
		}
		group.Go(func() error {
			outcomes[i] = f.predictObject(ctx, m, w, object)
			return nil
		})
	}
	_ = group.Wait()
	return outcomes
}

// maxTries is how often an object that changes meanwhile is predicted.
const maxTries = 3

// predictObject decides about one object as the operator does, and has the member dry-run the write.
func (f *simulator) predictObject(ctx context.Context, m *member.Client, w *workv1alpha1.Work, manifest *unstructured.Unstructured) Outcome {
	o := Outcome{Object: objectIn(manifest, m.Name), Action: model.ActionUnknown}
	for try := 1; ; try++ {
		err := f.dryRun(ctx, m, w, manifest, &o)
		if apierrors.IsConflict(err) && try < maxTries {
			continue
		}
		if err != nil {
			o.Failed, o.Reason = true, member.RefusedReason(m.Name, manifest, err)
		}
		return o
	}
}

func (f *simulator) dryRun(ctx context.Context, m *member.Client, w *workv1alpha1.Work, manifest *unstructured.Unstructured, o *Outcome) error {
	object := work.Object{Manifest: manifest}
	if err := object.Observe(ctx, m); err != nil {
		return err
	}
	step := work.Decide(work.Observed{Hub: f.id, Work: w, Cluster: f.clusters[m.Name], Connected: true}, object)
	o.Action, o.Reason = step.Action, step.Reason
	switch step.Action {
	case model.ActionLeave:
		o.Action, o.Failed = model.ActionConflict, true
	case model.ActionCreate:
		err := m.API.Create(ctx, step.Desired, client.FieldOwner(model.FieldOwner), client.DryRunAll)
		if apierrors.IsNotFound(err) && step.Desired.GetNamespace() != "" {
			o.Note = "the namespace is created first"
			return nil
		}
		return err
	case model.ActionTakeOver, model.ActionUpdate:
		if err := m.API.Update(ctx, step.Desired, client.FieldOwner(model.FieldOwner), client.DryRunAll); err != nil {
			return err
		}
		o.Effect = effectOf(object.Live, step.Desired)
	}
	return nil
}
