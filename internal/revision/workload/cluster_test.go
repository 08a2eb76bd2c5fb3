package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// cluster is a Kubernetes in memory with a clock of its own, and as much of one as the controller reads and writes. A
// migration of hours takes it milliseconds, and it can be stopped between any two writes.
type cluster struct {
	t           testing.TB
	now         time.Time
	version     int
	istio       *v1.Istio // nil once it is gone
	revisions   []v1.IstioRevision
	tags        []v1.IstioRevisionTag
	namespaces  map[string]*metav1.PartialObjectMetadata
	apps        map[string]*app // by "shop/cart"
	others      []*metav1.PartialObjectMetadata
	coming      []scheduled
	controllers *process // the controller that is told of changes

	// injectorFails is what the injector of a revision answers instead of a sidecar.
	injectorFails map[string]error
	// tagsBroken is why tags do not follow; empty if they do.
	tagsBroken string
	// refuses is an admission policy.
	refuses func(client.Object) error
	writes  int
	// statuses are the writes of a status among them.
	statuses int
	// restarting is the most that ever were at a time, restarts how often each was for each target.
	restarting int
	restarts   map[string]int
	// asked is how often each revision was asked for, settled when the last restart of a migration was over.
	asked   map[string]int
	settled map[time.Time]time.Time
	// onMove and onStatus are told of what is written, lag how many of that many events arrive.
	onMove   func(a *app, now *appsv1.Deployment, mark *Mark)
	onStatus func(*v1.WorkloadMigrationStatus)
	lag      func(events int) int
	// podsHeard is until when no event of a pod arrives.
	podsHeard time.Time

	tell func(format string, args ...any)
}

// scheduled is something that happens by itself later.
type scheduled struct {
	at       time.Time
	reported string
	do       func()
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{
		t: t, now: epoch, istio: makeIstio("default"),
		revisions:  []v1.IstioRevision{makeRevision(old, "v1.24.0", "default"), makeRevision(foreign24, "v1.24.0", "other")},
		namespaces: map[string]*metav1.PartialObjectMetadata{}, apps: map[string]*app{},
		injectorFails: map[string]error{},
		restarts:      map[string]int{}, asked: map[string]int{}, settled: map[time.Time]time.Time{},
		onMove:   func(*app, *appsv1.Deployment, *Mark) {},
		onStatus: func(*v1.WorkloadMigrationStatus) {},
		lag:      func(events int) int { return events },
		tell:     func(string, ...any) {},
	}
	c.istio.Spec.Version, c.istio.Status.ActiveRevisionName = "v1.24.0", old
	c.namespace("istio-system", "")
	return c
}

// later lets something happen after a while.
func (c *cluster) later(after time.Duration, reported string, do func()) {
	c.coming = append(c.coming, scheduled{c.now.Add(after), reported, do})
	slices.SortStableFunc(c.coming, func(a, b scheduled) int { return a.at.Compare(b.at) })
}

// upgrade is what the passage of revisions does when spec.version is changed: a revision that is ready five seconds
// later, and then the tags follow.
func (c *cluster) upgrade(version string) {
	name := "default-" + strings.ReplaceAll(version, ".", "-")
	c.istio.Spec.Version, c.istio.Status.ActiveRevisionName = version, name
	c.istio.Generation++
	c.istio.Status.ObservedGeneration = c.istio.Generation
	c.sailChanged()
	follow := func() {
		for i := range c.tags {
			if ref := c.tags[i].Spec.TargetRef; ref.Kind == v1.IstioKind && c.istio != nil && c.istio.Status.ActiveRevisionName == name {
				if c.tagsBroken != "" {
					unreconciled(v1.ReasonOwnedByOthers, c.tagsBroken)(&c.tags[i])
					continue
				}
				c.tags[i].Status.IstioRevision = name
			}
		}
		c.sailChanged()
	}
	if !slices.ContainsFunc(c.revisions, func(r v1.IstioRevision) bool { return r.Name == name }) {
		revision := makeRevision(name, version, "default")
		revision.Status.Conditions[0].Status = metav1.ConditionFalse
		c.revisions = append(c.revisions, revision)
		c.later(5*time.Second, "IstioRevision "+name+" is ready", func() {
			for i := range c.revisions {
				if c.revisions[i].Name == name {
					c.revisions[i].Status.Conditions[0].Status = metav1.ConditionTrue
				}
			}
			c.sailChanged()
		})
	}
	if len(c.tags) > 0 {
		c.later(6*time.Second, "the tags of Istio default point to "+name, follow)
	}
}

// change is what people do to the Istio.
func (c *cluster) change(how func(*v1.Istio)) {
	if c.istio == nil {
		return
	}
	how(c.istio)
	c.sailChanged()
}

func (c *cluster) sailChanged() {
	if c.istio != nil {
		c.istio.ResourceVersion = c.nextVersion()
	}
	if c.controllers != nil {
		c.controllers.triggered = true
	}
}

func (c *cluster) namespace(name, labels string) {
	ns := usage.MetadataOf("Namespace")
	ns.Name, ns.UID, ns.Labels = name, types.UID("uid-of-"+name), labelled(labels)
	ns.ResourceVersion = c.nextVersion()
	c.namespaces[name] = ns
	c.controllers.saw(kindNamespace, ns, false)
}

func (c *cluster) nextVersion() string {
	c.version++
	return strconv.Itoa(c.version)
}

// injects is the revision of the sidecar that a pod gets which is created now.
func (c *cluster) injects(d *appsv1.Deployment) string {
	if d.Spec.Template.Annotations[v1.LabelSidecarInject] == "false" {
		return ""
	}
	return c.injector(d.Namespace, d.Spec.Template.Labels)
}

// injector is the revision whose injector is called for a pod.
func (c *cluster) injector(namespace string, labels map[string]string) string {
	name := usage.Choose(c.namespaces[namespace].Labels, labels).Name
	for i := range c.tags {
		if c.tags[i].Name == name {
			return c.tags[i].Status.IstioRevision
		}
	}
	for i := range c.revisions {
		if c.revisions[i].Name == name {
			return name
		}
	}
	return ""
}

// api is the API server as one process of the controller sees it.
type api struct {
	client.Client
	*cluster
	// mayWrite is asked before each write. A process that may not is dead, and writes nothing any more.
	mayWrite func() bool
	dead     bool
}

var errKilled = errors.New("killed")

func (a *api) alive() bool {
	a.dead = a.dead || !a.mayWrite()
	if !a.dead {
		a.writes++
	}
	return !a.dead
}

func (a *api) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if a.istio == nil || a.istio.Name != key.Name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "istios"}, key.Name)
	}
	a.istio.DeepCopyInto(object.(*v1.Istio))
	return nil
}

// Create takes pods as dry runs.
func (a *api) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	pod := object.(*corev1.Pod)
	var asked client.CreateOptions
	asked.ApplyOptions(options)
	if !slices.Equal(asked.DryRun, []string{metav1.DryRunAll}) {
		a.t.Fatalf("the controller creates pod %s/%s, not as a dry run", pod.Namespace, pod.Name)
	}
	revision := a.injector(pod.Namespace, pod.Labels)
	if err := a.injectorFails[revision]; err != nil {
		return err
	}
	if revision != "" {
		pod.Annotations = map[string]string{v1.AnnotationRevision: revision}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "istio-proxy"})
	}
	return nil
}

func (a *api) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	switch list := list.(type) {
	case *metav1.PartialObjectMetadataList:
		if list.Kind == "MutatingWebhookConfigurationList" {
			return nil
		}
		var asked client.ListOptions
		asked.ApplyOptions(options)
		for _, app := range a.sorted() {
			for _, pod := range app.pods {
				if app.Namespace == asked.Namespace {
					list.Items = append(list.Items, *app.podObject(pod))
				}
			}
		}
	case *v1.IstioRevisionList:
		(&v1.IstioRevisionList{Items: a.revisions}).DeepCopyInto(list)
	case *v1.IstioRevisionTagList:
		(&v1.IstioRevisionTagList{Items: a.tags}).DeepCopyInto(list)
	default:
		a.t.Fatalf("the controller lists %T", list)
	}
	return nil
}

// Patch takes merge patches that name the version of the object that they are about.
func (a *api) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	var asked client.PatchOptions
	asked.ApplyOptions(options)
	dry := len(asked.DryRun) > 0
	if !dry && !a.alive() {
		return errKilled
	}
	body, err := patch.Data(object)
	if err != nil || patch.Type() != types.MergePatchType {
		a.t.Fatalf("not a merge patch: %s %v", patch.Type(), err)
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	var live client.Object
	if ns := a.namespaces[name.Name]; name.Namespace == "" && ns != nil {
		live = ns
	}
	if app := a.apps[name.String()]; app != nil && reflect.TypeOf(app.object()) == reflect.TypeOf(object) {
		live = app.Deployment
	}
	if live == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, name.String())
	}
	var change map[string]any
	decode(a.t, body, &change)
	meta, _ := change["metadata"].(map[string]any)
	if meta["uid"] != string(live.GetUID()) || meta["resourceVersion"] != live.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, name.String(), fmt.Errorf("it is at %s", live.GetResourceVersion()))
	}
	if a.refuses != nil {
		if err := a.refuses(live); err != nil {
			return err
		}
	}
	if dry {
		return nil
	}
	var before map[string]any
	decode(a.t, encode(a.t, live), &before)
	changed := encode(a.t, merged(before, change))
	switch live := live.(type) {
	case *appsv1.Deployment:
		app, now := a.apps[name.String()], &appsv1.Deployment{}
		decode(a.t, changed, now)
		app.wrote(now)
		decode(a.t, encode(a.t, app.object()), object)
	case *metav1.PartialObjectMetadata:
		now := object.(*metav1.PartialObjectMetadata)
		*now = metav1.PartialObjectMetadata{}
		decode(a.t, changed, now)
		now.ResourceVersion = a.nextVersion()
		a.tell("relabel  namespace %s: %s", now.Name, labelsOf(now.Labels))
		now.DeepCopyInto(live)
		a.controllers.saw(kindNamespace, live, false)
	}
	return nil
}

func (a *api) Status() client.SubResourceWriter { return statusOfAPI{on: a} }

type statusOfAPI struct {
	client.SubResourceWriter
	on *api
}

// Apply takes the part of an Istio's status that the passage owns.
func (s statusOfAPI) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	a := s.on
	if !a.alive() {
		return errKilled
	}
	var applied v1.Istio
	decode(a.t, encode(a.t, configuration), &applied)
	istios := schema.GroupResource{Resource: "istios"}
	switch {
	case a.istio == nil:
		return apierrors.NewNotFound(istios, applied.Name)
	case a.istio.ResourceVersion != applied.ResourceVersion:
		return apierrors.NewConflict(istios, applied.Name, fmt.Errorf("it is at %s", a.istio.ResourceVersion))
	}
	a.statuses++
	status := &a.istio.Status
	a.tellStatus(status.WorkloadMigration, applied.Status.WorkloadMigration)
	a.onStatus(applied.Status.WorkloadMigration)
	status.WorkloadMigration = applied.Status.WorkloadMigration
	reported, now := migratedCondition(a.istio), migratedCondition(&applied)
	if now == nil {
		meta.RemoveStatusCondition(&status.Conditions, string(v1.ConditionWorkloadsMigrated))
	} else {
		if reported == nil || reported.Reason != now.Reason || reported.Message != now.Message || reported.Status != now.Status {
			a.tell("         %s: %s", now.Reason, now.Message)
		}
		meta.SetStatusCondition(&status.Conditions, *now)
	}
	a.sailChanged()
	return nil
}

func (c *cluster) tellStatus(before, now *v1.WorkloadMigrationStatus) {
	text := func(s *v1.WorkloadMigrationStatus) string {
		if s == nil {
			return "none"
		}
		line := string(s.State)
		if s.StartTime != nil {
			line += fmt.Sprintf(", %d of %d migrated", s.MigratedWorkloads, s.TotalWorkloads)
		}
		if s.FailedWorkloads > 0 {
			line += fmt.Sprintf(", %d failed", s.FailedWorkloads)
		}
		if s.Batched != nil && s.Batched.TotalBatches > 0 {
			line += fmt.Sprintf(", batch %d of %d", s.Batched.CurrentBatch, s.Batched.TotalBatches)
		}
		return line
	}
	if text(before) != text(now) || now != nil && before.TargetRevision != now.TargetRevision {
		c.tell("status   %s", text(now))
	}
}

func labelsOf(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, " ")
}

// merged is a JSON merge patch, applied.
func merged(to, patch map[string]any) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(to, key)
		case map[string]any:
			inner, _ := to[key].(map[string]any)
			to[key] = merged(inner, value)
		default:
			to[key] = value
		}
	}
	return to
}

func encode(t testing.TB, object any) []byte {
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func decode(t testing.TB, body []byte, into any) {
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
}

// sorted are the workloads in the order of their names.
func (c *cluster) sorted() []*app {
	return slices.SortedFunc(maps.Values(c.apps), func(a, b *app) int { return cmp.Compare(a.key(), b.key()) })
}
