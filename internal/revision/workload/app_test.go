package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// app is a Deployment with the controller that replaces its pods one by one, a new one before an old one. With another kind,
// it is what that kind has in common with a Deployment, with the controller of that kind.
type app struct {
	*cluster
	kind     string
	onDelete bool
	*appsv1.Deployment
	// takes is how long a pod needs to get ready. On the revision brokenOn it never does.
	takes    time.Duration
	brokenOn string
	// refusedOn is the revision whose injector refuses its pods.
	refusedOn string
	// deadline is its progressDeadlineSeconds; zero is none.
	deadline time.Duration
	// untouchable must never be written.
	untouchable bool

	pods []appPod
	// templates are those that it ever had: the same one again makes use of what is left of the first.
	templates []corev1.PodTemplateSpec
	born      int
	// acts is when its controller looks at it next; zero is never. progressed is when a pod last came or got ready.
	acts       time.Time
	progressed time.Time
	// ours is set while it rolls out what we have written; disturbed tells whether it was when we last wrote.
	ours, disturbed bool
}

type appPod struct {
	name     string
	template int
	revision string
	ready    time.Time // zero: never
}

// deploy is a Deployment that has been running for an hour.
func (c *cluster) deploy(name string, options ...func(*app)) *app {
	d, _ := makeDeployment(name)
	a := &app{cluster: c, kind: kindDeployment, Deployment: d, takes: 10 * time.Second, deadline: 10 * time.Minute}
	for _, option := range options {
		option(a)
	}
	a.born++
	a.UID = types.UID(fmt.Sprintf("%s-%d", a.UID, c.version))
	a.templates = []corev1.PodTemplateSpec{*a.Spec.Template.DeepCopy()}
	for range ptr.Deref(a.Spec.Replicas, 1) {
		a.create(c.now.Add(-time.Hour))
	}
	a.Status, a.progressed = appsv1.DeploymentStatus{}, c.now.Add(-time.Hour)
	c.apps[a.key()] = a
	a.report("NewReplicaSetAvailable", c.now.Add(-time.Hour))
	return a
}

func (a *app) key() string { return a.Namespace + "/" + a.Name }

func (a *app) desired() int { return int(ptr.Deref(a.Spec.Replicas, 1)) }

// wrote takes in a Deployment as a client left it.
func (a *app) wrote(d *appsv1.Deployment) {
	before := a.Deployment
	if a.untouchable {
		a.t.Errorf("%s: %s is written, and must not be", a.now.Sub(epoch), a.key())
	}
	restarts := !equality.Semantic.DeepEqual(before.Spec.Template, d.Spec.Template)
	was := markOn(before)
	a.disturbed = was != nil && a.ours && was.Failed.IsZero()
	switch mark := markOn(d); {
	case !restarts && mark.Action == ActionContinue && was.Target != mark.Target:
		a.tell("%s %s, batch %d", mark.Action, a.key(), mark.Batch)
	case restarts:
		a.ours = a.desired() > 0
		a.restarts[a.key()+" to "+mark.Target]++
		a.tell("%s  %s, batch %d%s", mark.Action, a.key(), mark.Batch, ownLabel(d))
	case mark.state() == passage.Running:
		a.tell("note     %s is overdue", a.key())
		a.settled[mark.Run] = a.now
	case mark.Failed.IsZero():
		a.tell("note     %s is done", a.key())
	default:
		a.tell("note     %s has failed: %s", a.key(), mark.Reason.Message)
	}
	mark := markOn(d)
	if !mark.Failed.IsZero() && mark.Overdue.IsZero() {
		a.settled[mark.Run] = a.now
	}
	a.update(d)
	a.restarting = max(a.restarting, a.underway())
	if restarts {
		a.onMove(a, d, mark)
	}
}

func markOn(d *appsv1.Deployment) *Mark { return markOf(inventory.From(d)) }

func ownLabel(d *appsv1.Deployment) string {
	if labels := labelsOf(d.Spec.Template.Labels); labels != "" {
		return ": " + labels
	}
	return ""
}

// underway counts what is being moved to the target by us and was not given up.
func (c *cluster) underway() int {
	n := 0
	target := c.istio.Status.ActiveRevisionName
	settings, _ := c.istio.Spec.UpdateStrategy.WorkloadMigration.Settings()
	for _, a := range c.apps {
		mark := markOn(a.Deployment)
		if a.ours && mark.Target == target && mark.Failed.IsZero() && c.now.Before(mark.Started.Add(min(settings.ReadinessTimeout, timeouts{settings.ReadinessTimeout, settings.MaxReadinessTimeout}.of(inventory.From(a.Deployment))))) {
			n++
		}
	}
	return n
}

// update is a write by anybody. Its controller sees it a second later.
func (a *app) update(d *appsv1.Deployment) {
	if !equality.Semantic.DeepEqual(a.Deployment.Spec, d.Spec) ||
		a.kind == kindDeployment && !equality.Semantic.DeepEqual(a.Deployment.Annotations, d.Annotations) {
		d.Generation = a.Generation + 1
	}
	if !equality.Semantic.DeepEqual(a.Deployment.Spec.Template, d.Spec.Template) {
		a.progressed = a.now
	}
	a.Deployment = d.DeepCopy()
	a.acts = a.now.Add(time.Second)
	a.publish(d)
}

func (a *app) publish(d *appsv1.Deployment) {
	a.ResourceVersion = a.nextVersion()
	d.Generation, d.ResourceVersion = a.Generation, a.ResourceVersion
	a.controllers.saw(a.kind, a.object(), false)
}

// edit is a change that its owner makes.
func (a *app) edit(how func(*appsv1.Deployment)) {
	d := a.DeepCopy()
	how(d)
	a.update(d)
	if a.ours && a.desired() == 0 {
		a.arrive()
	}
}

// arrive is the end of a rollout of ours.
func (a *app) arrive() {
	a.ours = false
	if mark := markOn(a.Deployment); mark != nil && mark.Failed.IsZero() && mark.Overdue.IsZero() {
		a.settled[mark.Run] = a.now
	}
}

// remove is the deletion of it and its pods.
func (a *app) remove() {
	delete(a.apps, a.key())
	// What is gone needs no rest.
	clear(a.settled)
	for len(a.pods) > 0 {
		a.destroy(0)
	}
	a.controllers.saw(a.kind, a.object(), true)
}

func (a *app) template() int {
	for i := range a.templates {
		if equality.Semantic.DeepEqual(a.templates[i], a.Spec.Template) {
			return i
		}
	}
	a.templates = append(a.templates, *a.Spec.Template.DeepCopy())
	return len(a.templates) - 1
}

// act is what its controller does about it now.
func (a *app) act() {
	a.acts = time.Time{}
	if a.kind != kindDeployment {
		a.replaceInPlace()
		return
	}
	template := a.template()
	progress := false
	for {
		fresh := slices.DeleteFunc(slices.Clone(a.pods), func(p appPod) bool { return p.template != template })
		stale := slices.IndexFunc(a.pods, func(p appPod) bool { return p.template != template })
		// Old pods that are not ready go first: nobody misses them.
		failing := slices.IndexFunc(a.pods, func(p appPod) bool { return p.template != template && a.ready([]appPod{p}) == 0 })
		surplus := a.ready(a.pods) > a.desired() || len(fresh) >= a.desired() && a.ready(fresh) == len(fresh)
		switch {
		case len(fresh) > a.desired():
			a.destroy(slices.IndexFunc(a.pods, func(p appPod) bool { return p.template == template }))
		case failing >= 0:
			a.destroy(failing)
		case stale >= 0 && surplus:
			a.destroy(stale)
		case len(fresh) < a.desired() && len(a.pods) <= a.desired() && a.refusedOn != "" && a.injects(a.Deployment) == a.refusedOn:
			a.conclude(progress, template)
			a.acts = earliest(a.acts, a.now.Add(5*time.Second))
			return
		case len(fresh) < a.desired() && len(a.pods) <= a.desired():
			a.create(a.now)
		default:
			a.conclude(progress, template)
			return
		}
		progress = true
	}
}

func (a *app) conclude(progress bool, template int) {
	for _, p := range a.pods {
		if p.ready.After(a.now) {
			a.acts = earliest(a.acts, p.ready)
		}
		progress = progress || p.ready.Equal(a.now)
	}
	if progress {
		a.progressed = a.now
	}
	stale := slices.ContainsFunc(a.pods, func(p appPod) bool { return p.template != template })
	complete := !stale && len(a.pods) == a.desired() && a.ready(a.pods) == a.desired()
	was := progressingCondition(a.Deployment)
	switch {
	case complete && a.ours:
		a.arrive()
		a.tell("ready    %s on %s", a.key(), a.runsOn())
		fallthrough
	case complete:
		a.report("NewReplicaSetAvailable", a.now)
	case a.deadline > 0 && !a.now.Before(a.progressed.Add(a.deadline)):
		a.report("ProgressDeadlineExceeded", a.now)
	case !stale && was != nil && was.Reason == "NewReplicaSetAvailable":
		// A pod that is lost, or a change of replicas, is no rollout.
		a.report(was.Reason, a.now)
	default:
		if a.deadline > 0 {
			a.acts = earliest(a.acts, a.progressed.Add(a.deadline))
		}
		a.report("ReplicaSetUpdated", a.now)
	}
}

// report writes its status. A condition keeps its time as long as its reason stays the same.
func (a *app) report(reason string, at time.Time) {
	before := *a.Status.DeepCopy()
	template := a.template()
	a.Status.ObservedGeneration = a.Generation
	a.Status.Replicas, a.Status.UpdatedReplicas = int32(len(a.pods)), 0
	for _, p := range a.pods {
		if p.template == template {
			a.Status.UpdatedReplicas++
		}
	}
	a.Status.ReadyReplicas = int32(a.ready(a.pods))
	a.Status.AvailableReplicas = a.Status.ReadyReplicas
	if was := progressingCondition(a.Deployment); a.deadline > 0 && (was == nil || was.Reason != reason) {
		status := corev1.ConditionTrue
		if reason == "ProgressDeadlineExceeded" {
			status = corev1.ConditionFalse
		}
		a.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: metav1.NewTime(at.Truncate(time.Second)),
		}}
	}
	if !equality.Semantic.DeepEqual(before, a.Status) {
		a.publish(a.DeepCopy())
	}
}

func progressingCondition(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == appsv1.DeploymentProgressing {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func (a *app) ready(pods []appPod) int {
	n := 0
	for _, p := range pods {
		if !p.ready.IsZero() && !p.ready.After(a.now) {
			n++
		}
	}
	return n
}

// runsOn are the revisions that its pods run.
func (a *app) runsOn() string {
	var on []string
	for _, p := range a.pods {
		if name := orNone(p.revision); !slices.Contains(on, name) {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return strings.Join(on, " and ")
}

func orNone(revision string) string {
	if revision == "" {
		return "no revision"
	}
	return revision
}

func (a *app) create(at time.Time) {
	p := appPod{
		name:     fmt.Sprintf("%s-%d-%d", a.Name, a.template(), a.born),
		template: a.template(), revision: a.injects(a.Deployment), ready: at.Add(a.takes),
	}
	a.born++
	if p.revision == a.brokenOn && a.brokenOn != "" {
		p.ready = time.Time{}
	}
	a.pods = append(a.pods, p)
	a.controllers.saw(kindPodOfApp, a.podObject(p), false)
}

func (a *app) destroy(i int) {
	a.controllers.saw(kindPodOfApp, a.podObject(a.pods[i]), true)
	a.pods = slices.Delete(a.pods, i, i+1)
}

func (a *app) podObject(p appPod) *metav1.PartialObjectMetadata {
	object := usage.MetadataOf(kindPodOfApp)
	hash := fmt.Sprint(p.template)
	object.Namespace, object.Name = a.Namespace, p.name
	object.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.Name + "-" + hash, Controller: ptr.To(true),
	}}
	if a.kind != kindDeployment {
		object.Labels = nil
		object.OwnerReferences[0].Kind, object.OwnerReferences[0].Name = a.kind, a.Name
	}
	if p.revision != "" {
		object.Annotations = map[string]string{v1.AnnotationRevision: p.revision}
	}
	return object
}

// unmanagedWorkload is a workload of another kind, with one pod.
func (c *cluster) unmanagedWorkload(kind, name, revision string) {
	pod := usage.MetadataOf(kindPodOfApp)
	var owner string
	pod.Namespace, owner, _ = strings.Cut(name, "/")
	pod.Name = owner + "-0"
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, Controller: ptr.To(true)}}
	pod.Annotations = map[string]string{v1.AnnotationRevision: revision}
	c.others = append(c.others, pod)
	c.controllers.saw(kindPodOfApp, pod, false)
}
