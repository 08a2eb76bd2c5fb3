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

// simulator looks at the hub and the clusters, and writes nothing.
type simulator struct {
	hub      client.Reader
	id       string
	works    map[client.ObjectKey]*workv1alpha1.Work
	clusters map[string]*clusterv1alpha1.Cluster
	members  *member.Clients
}

// Predict tells what the operator does about a policy, with the operator's own decisions. The API servers of the clusters try
// every write without doing it. Proposed are resources to reckon with as if the hub had them.
func Predict(ctx context.Context, hub client.Reader, policy *policy.Policy, proposed ...*unstructured.Unstructured) (Forecast, error) {
	f := Forecast{Subject: policy.Object(), Hold: policy.Hold()}
	v, err := observeHub(ctx, hub, policy)
	if err != nil {
		return f, err
	}
	for _, p := range proposed {
		v.proposed[model.KeyOf(p)] = p
	}
	going, elsewhere, err := v.planBindings(ctx, hub, policy)
	if err != nil {
		return f, err
	}
	f.Elsewhere = elsewhere
	look, err := newSimulator(ctx, hub)
	if err != nil {
		return f, err
	}
	if err := f.predict(ctx, look, going); err != nil {
		return f, err
	}
	f.Obstacles = append(f.Obstacles, selectorSteps(policy)...)
	slices.Sort(f.Notes)
	return f, nil
}

func newSimulator(ctx context.Context, hub client.Reader) (*simulator, error) {
	f := &simulator{hub: hub, works: map[client.ObjectKey]*workv1alpha1.Work{}, clusters: map[string]*clusterv1alpha1.Cluster{}, members: member.NewCommandClients(hub)}
	var err error
	if f.id, err = model.HubID(ctx, hub); err != nil {
		return nil, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	for i := range clusters.Items {
		f.clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works); err != nil {
		return nil, fmt.Errorf("list Works: %w", err)
	}
	for i := range works.Items {
		if !works.Items[i].DeletionTimestamp.IsZero() {
			// It is made anew when it is gone.
			continue
		}
		f.works[client.ObjectKeyFromObject(&works.Items[i])] = &works.Items[i]
	}
	return f, nil
}

// predict goes to all clusters at the same time, and looks at a few objects at once in each.
func (f *Forecast) predict(ctx context.Context, look *simulator, going []plannedBinding) error {
	byCluster := map[string][]binding.Target{}
	for _, j := range going {
		all, wrong, err := binding.PlanTargets(j.binding, j.template)
		if err != nil {
			return err
		}
		if wrong != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s %s: %v", j.template.GetKind(), model.NameOf(j.template), wrong))
		}
		if len(all) == 0 {
			f.Obstacles = append(f.Obstacles, passage.Step{
				Object: model.ObjectOf(j.template), Action: model.ActionBind, State: passage.Failed,
				Reason: passage.Because(model.ReasonNoCluster, "%s %s goes nowhere: no cluster that has joined is selected by spec.placement", j.template.GetKind(), model.NameOf(j.template)),
			})
		}
		for _, s := range all {
			byCluster[s.Cluster] = append(byCluster[s.Cluster], s)
		}
		f.Outlooks = append(f.Outlooks, look.predictDeletions(j, all)...)
	}
	var mu sync.Mutex
	var group errgroup.Group
	for cluster, shares := range byCluster {
		group.Go(func() error {
			all := look.predictCluster(ctx, cluster, shares)
			mu.Lock()
			defer mu.Unlock()
			f.Outlooks = append(f.Outlooks, all...)
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(f.Outlooks, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Object.Cluster, b.Object.Cluster), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return context.Cause(ctx)
}

// predictDeletions are the objects in clusters that a resource no longer goes to.
func (f *simulator) predictDeletions(j plannedBinding, to []binding.Target) []Outcome {
	var all []Outcome
	name := model.WorkName(model.TemplateOf(j.template))
	for cluster := range f.clusters {
		work := f.works[client.ObjectKey{Namespace: model.ExecutionNamespace(cluster), Name: name}]
		if work == nil || slices.ContainsFunc(to, func(s binding.Target) bool { return s.Cluster == cluster }) {
			continue
		}
		all = append(all, predictDeletion(j, work, f.clusters[cluster]))
	}
	return all
}

// predictDeletion is what becomes of an object in a cluster that its resource no longer goes to.
func predictDeletion(j plannedBinding, w *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) Outcome {
	o := Outcome{
		Object: objectIn(j.template, cluster.Name), Action: model.ActionRemove,
		Reason: passage.Because("NotPlaced", "its placement no longer selects cluster %s", cluster.Name),
	}
	if cluster.DeletionTimestamp != nil {
		o.Reason = passage.Because(model.ReasonLeaving, "cluster %s is leaving the hub", cluster.Name)
	}
	left := w.DeepCopy()
	left.Spec.PreserveResourcesOnDeletion = ptr.To(binding.IsPreserved(j.binding, w))
	o.Pods = podsOfWork(w)
	if work.DeletionActionFor(left, cluster, nil) == work.Delete {
		o.Goes = o.Pods > 0
	} else {
		o.Action = model.ActionRelease
	}
	return o
}

// podsOfWork are those of what a Work has made.
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

// predictCluster looks at all objects of one cluster.
func (f *simulator) predictCluster(ctx context.Context, cluster string, all []binding.Target) []Outcome {
	outlooks := make([]Outcome, len(all))
	m, err := f.members.ConnectForCommand(ctx, f.clusters[cluster])
	if err != nil {
		for i, s := range all {
			outlooks[i] = Outcome{
				Object: objectIn(s.Manifest, cluster), Action: model.ActionUnknown, Failed: true, Reason: passage.Because(model.ReasonUnreachable, "%v", err),
			}
		}
		return outlooks
	}
	defer f.members.Disconnect(cluster)
	var group errgroup.Group
	group.SetLimit(model.MaxConcurrent)
	for i, s := range all {
		group.Go(func() error {
			outlooks[i] = f.predictObject(ctx, m, s.Manifest)
			return nil
		})
	}
	_ = group.Wait()
	return outlooks
}

// maxTries are how often an object is looked at that somebody changes meanwhile.
const maxTries = 3

// predictObject decides about one object as the operator would, and has the cluster try it.
func (f *simulator) predictObject(ctx context.Context, m *member.Client, manifest *unstructured.Unstructured) Outcome {
	o := Outcome{Object: objectIn(manifest, m.Name), Action: model.ActionUnknown}
	work := f.works[client.ObjectKey{Namespace: model.ExecutionNamespace(m.Name), Name: model.WorkName(model.TemplateOf(manifest))}]
	for try := 1; ; try++ {
		err := f.dryRun(ctx, m, manifest, work, &o)
		if apierrors.IsConflict(err) && try < maxTries {
			continue
		}
		if err != nil {
			o.Failed, o.Reason = true, member.RefusedReason(m.Name, manifest, err)
		}
		return o
	}
}

func (f *simulator) dryRun(ctx context.Context, m *member.Client, manifest *unstructured.Unstructured, w *workv1alpha1.Work, o *Outcome) error {
	live, err := m.Get(ctx, manifest)
	if err != nil {
		return err
	}
	scaled, err := m.IsAutoscaled(ctx, manifest, live)
	if err != nil {
		return err
	}
	who, before := model.IdentityOf(f.id, manifest), work.Record{}
	if w != nil {
		before = work.RecordOf(w, 0)
	}
	v, err := work.Decide(m.Name, manifest, live, who, before, scaled)
	if err != nil {
		return err
	}
	o.Action, o.Reason = v.Action, v.Reason
	switch v.Action {
	case model.ActionLeave:
		o.Action, o.Failed = model.ActionConflict, true
	case model.ActionCreate:
		return dryRunCreate(ctx, m, v.Desired, o)
	case model.ActionTakeOver, model.ActionUpdate:
		would := v.Desired.DeepCopy()
		if err := m.API.Update(ctx, would, client.FieldOwner(model.FieldOwner), client.DryRunAll); err != nil {
			return err
		}
		o.Effect = effectOf(live, would)
	}
	return nil
}

func dryRunCreate(ctx context.Context, m *member.Client, want *unstructured.Unstructured, o *Outcome) error {
	err := m.API.Create(ctx, want.DeepCopy(), client.FieldOwner(model.FieldOwner), client.DryRunAll)
	if apierrors.IsNotFound(err) && want.GetNamespace() != "" {
		o.Note = "its namespace is made first"
		return nil
	}
	return err
}
