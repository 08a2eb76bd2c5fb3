package adoption

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
	"github.com/fairlead/fairlead/internal/passage"
)

// forecaster looks at the hub and the clusters, and writes nothing.
type forecaster struct {
	hub      client.Reader
	id       string
	works    map[client.ObjectKey]*workv1alpha1.Work
	clusters map[string]*clusterv1alpha1.Cluster
	visitors *members
}

// Predict tells what the operator does about a policy, with the operator's own decisions. The API servers of the clusters try
// every write without doing it. Proposed are resources to reckon with as if the hub had them.
func Predict(ctx context.Context, hub client.Reader, policy *Policy, proposed ...*unstructured.Unstructured) (Forecast, error) {
	f := Forecast{Subject: policy.object(), Hold: policy.hold()}
	v, err := view(ctx, hub, policy)
	if err != nil {
		return f, err
	}
	for _, p := range proposed {
		v.proposed[keyOfTemplate(p)] = p
	}
	going, elsewhere, err := v.journeys(ctx, hub, policy)
	if err != nil {
		return f, err
	}
	f.Elsewhere = elsewhere
	look, err := newForecaster(ctx, hub)
	if err != nil {
		return f, err
	}
	if err := f.follow(ctx, look, going); err != nil {
		return f, err
	}
	f.Obstacles = append(f.Obstacles, misselections(policy)...)
	slices.Sort(f.Notes)
	return f, nil
}

func newForecaster(ctx context.Context, hub client.Reader) (*forecaster, error) {
	f := &forecaster{hub: hub, works: map[client.ObjectKey]*workv1alpha1.Work{}, clusters: map[string]*clusterv1alpha1.Cluster{}, visitors: visitors(hub)}
	var err error
	if f.id, err = hubID(ctx, hub); err != nil {
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

// follow goes to all clusters at the same time, and looks at a few objects at once in each.
func (f *Forecast) follow(ctx context.Context, look *forecaster, going []journey) error {
	byCluster := map[string][]share{}
	for _, j := range going {
		all, wrong, err := shares(j.binding, j.template)
		if err != nil {
			return err
		}
		if wrong != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s %s: %v", j.template.GetKind(), nameOf(j.template), wrong))
		}
		if len(all) == 0 {
			f.Obstacles = append(f.Obstacles, passage.Step{
				Object: objectOf(j.template), Action: ActionBind, State: passage.Failed,
				Reason: passage.Because(ReasonNoCluster, "%s %s goes nowhere: no cluster that has joined is selected by spec.placement", j.template.GetKind(), nameOf(j.template)),
			})
		}
		for _, s := range all {
			byCluster[s.cluster] = append(byCluster[s.cluster], s)
		}
		f.Outlooks = append(f.Outlooks, look.leftBehind(j, all)...)
	}
	var mu sync.Mutex
	var group errgroup.Group
	for cluster, shares := range byCluster {
		group.Go(func() error {
			all := look.in(ctx, cluster, shares)
			mu.Lock()
			defer mu.Unlock()
			f.Outlooks = append(f.Outlooks, all...)
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(f.Outlooks, func(a, b Outlook) int {
		return cmp.Or(cmp.Compare(a.Object.Cluster, b.Object.Cluster), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return context.Cause(ctx)
}

// leftBehind are the objects in clusters that a resource no longer goes to.
func (f *forecaster) leftBehind(j journey, to []share) []Outlook {
	var all []Outlook
	name := workName(describe(j.template))
	for cluster := range f.clusters {
		work := f.works[client.ObjectKey{Namespace: executionNamespace(cluster), Name: name}]
		if work == nil || slices.ContainsFunc(to, func(s share) bool { return s.cluster == cluster }) {
			continue
		}
		all = append(all, farewell(j, work, f.clusters[cluster]))
	}
	return all
}

// farewell is what becomes of an object in a cluster that its resource no longer goes to.
func farewell(j journey, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) Outlook {
	o := Outlook{
		Object: inCluster(j.template, cluster.Name), Action: ActionRemove,
		Reason: passage.Because("NotPlaced", "its placement no longer selects cluster %s", cluster.Name),
	}
	if cluster.DeletionTimestamp != nil {
		o.Reason = passage.Because(ReasonLeaving, "cluster %s is leaving the hub", cluster.Name)
	}
	left := work.DeepCopy()
	left.Spec.PreserveResourcesOnDeletion = ptr.To(staysBehind(j.binding, work))
	o.Pods = podsIn(work)
	if partingFor(left, cluster, nil) == remove {
		o.Goes = o.Pods > 0
	} else {
		o.Action = ActionRelease
	}
	return o
}

// podsIn are those of what a Work has made.
func podsIn(work *workv1alpha1.Work) int64 {
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

func inCluster(o *unstructured.Unstructured, cluster string) passage.Object {
	object := objectOf(o)
	object.Cluster = cluster
	return object
}

// in looks at all objects of one cluster.
func (f *forecaster) in(ctx context.Context, cluster string, all []share) []Outlook {
	outlooks := make([]Outlook, len(all))
	m, err := f.visitors.call(ctx, f.clusters[cluster])
	if err != nil {
		for i, s := range all {
			outlooks[i] = Outlook{
				Object: inCluster(s.manifest, cluster), Action: ActionUnknown, Failed: true, Reason: passage.Because(ReasonUnreachable, "%v", err),
			}
		}
		return outlooks
	}
	defer f.visitors.forget(cluster)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, s := range all {
		group.Go(func() error {
			outlooks[i] = f.outlook(ctx, m, s.manifest)
			return nil
		})
	}
	_ = group.Wait()
	return outlooks
}

// tries are how often an object is looked at that somebody changes meanwhile.
const tries = 3

// outlook decides about one object as the operator would, and has the cluster try it.
func (f *forecaster) outlook(ctx context.Context, m *member, manifest *unstructured.Unstructured) Outlook {
	o := Outlook{Object: inCluster(manifest, m.name), Action: ActionUnknown}
	work := f.works[client.ObjectKey{Namespace: executionNamespace(m.name), Name: workName(describe(manifest))}]
	for try := 1; ; try++ {
		err := f.attempt(ctx, m, manifest, work, &o)
		if apierrors.IsConflict(err) && try < tries {
			continue
		}
		if err != nil {
			o.Failed, o.Reason = true, refused(m.name, manifest, err)
		}
		return o
	}
}

func (f *forecaster) attempt(ctx context.Context, m *member, manifest *unstructured.Unstructured, work *workv1alpha1.Work, o *Outlook) error {
	live, err := m.find(ctx, manifest)
	if err != nil {
		return err
	}
	scaled, err := m.scaled(ctx, manifest, live)
	if err != nil {
		return err
	}
	who, before := identityOf(f.id, manifest), Record{}
	if work != nil {
		before = recordOf(work, 0)
	}
	v, err := settle(m.name, manifest, live, who, before, scaled)
	if err != nil {
		return err
	}
	o.Action, o.Reason = v.action, v.reason
	switch v.action {
	case ActionLeave:
		o.Action, o.Failed = ActionConflict, true
	case ActionCreate:
		return tryToCreate(ctx, m, v.want, o)
	case ActionTakeOver, ActionUpdate:
		would := v.want.DeepCopy()
		if err := m.client.Update(ctx, would, client.FieldOwner(FieldOwner), client.DryRunAll); err != nil {
			return err
		}
		o.Effect = effectOf(live, would)
	}
	return nil
}

func tryToCreate(ctx context.Context, m *member, want *unstructured.Unstructured, o *Outlook) error {
	err := m.client.Create(ctx, want.DeepCopy(), client.FieldOwner(FieldOwner), client.DryRunAll)
	if apierrors.IsNotFound(err) && want.GetNamespace() != "" {
		o.Note = "its namespace is made first"
		return nil
	}
	return err
}
