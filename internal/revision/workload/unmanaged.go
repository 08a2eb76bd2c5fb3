package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// unmanagedWorkloads are the workloads that run on an old revision and are of kinds that are not moved, without those that
// are followed to the end of their move, and the CronJobs whose next run would be on an old revision.
func (p *planner) unmanagedWorkloads(followed map[inventory.Owner]bool) []passage.Step {
	var steps []passage.Step
	for owner, pods := range p.Inventory.Pods {
		old := p.outdatedRevisions(pods)
		if len(old) == 0 || followed[owner] {
			continue
		}
		known := p.Inventory.Find(owner.Kind, owner.Namespace, owner.Name)
		if known != nil && (p.moves(owner.Kind) || known.DeletionTimestamp != nil) {
			continue
		}
		object, why := p.describeUnmanaged(owner, known)
		steps = append(steps, p.unmanagedStep(object, joinRevisions(old), why))
	}
	for name, labels := range p.Inventory.CronJobs {
		if old := usage.Choose(p.Inventory.Namespaces[name.Namespace].Labels, labels).Name; p.matchOf(old).revisionMatch == outdated {
			object := passage.Object{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: kindCronJob, Namespace: name.Namespace, Name: name.Name}
			advice := p.adviceFor(name.Namespace, unmanaged{kind: kindCronJob, name: name.Name, labels: labels})
			steps = append(steps, p.unmanagedStep(object, old, kindCronJob+" is not restarted by Fairlead; "+advice))
		}
	}
	slices.SortFunc(steps, func(a, b passage.Step) int {
		return cmp.Or(
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Name, b.Object.Name),
		)
	})
	return steps
}

func (p *planner) unmanagedStep(object passage.Object, from, why string) passage.Step {
	return passage.Step{
		Object: object, Action: ActionStay, From: from, To: p.Target.Name, State: passage.Skipped,
		Reason: passage.Because(v1.ReasonKindNotMoved, "%s", why),
	}
}

// describeUnmanaged is the object of an owner of pods, why it is not moved and what to do about it.
func (p *planner) describeUnmanaged(owner inventory.Owner, known *inventory.Workload) (passage.Object, string) {
	object := passage.Object{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}
	u := unmanaged{kind: owner.Kind, name: owner.Name, labels: p.Inventory.Samples[owner].Labels}
	switch {
	case known != nil:
		u.labels, u.onDelete = known.PodLabels, known.OnDelete
		if known.PodAnnotations[v1.LabelSidecarInject] == "false" || known.PodAnnotations[v1.AnnotationRevision] != "" {
			// An annotation has the same effect as the label.
			u.labels = map[string]string{v1.LabelSidecarInject: "false"}
		}
		return object, fmt.Sprintf("%s is not in batched.workloadKinds; %s", owner.Kind, p.adviceFor(owner.Namespace, u))
	case owner.Kind == kindDeployment:
		object.Kind, object.Name = kindReplicaSet, replicaSetOf(p.Inventory.Samples[owner].Name)
		u.kind = kindReplicaSet
		return object, fmt.Sprintf("Deployment %s does not exist, and its ReplicaSet is not restarted by Fairlead; %s",
			owner.Name, p.adviceFor(owner.Namespace, u))
	}
	return object, fmt.Sprintf("%s is not restarted by Fairlead; %s", owner.Kind, p.adviceFor(owner.Namespace, u))
}

const (
	kindCronJob    = "CronJob"
	kindJob        = "Job"
	kindPod        = "Pod"
	kindReplicaSet = "ReplicaSet"
)

// replicaSetOf is the name of the ReplicaSet of a pod. The end of a long name is cut off in that of the pod.
func replicaSetOf(pod string) string {
	if i := strings.LastIndex(pod, "-"); i > 0 {
		return pod[:i]
	}
	return pod
}

// cronJobOf is the name of the CronJob that made a Job, or empty. A CronJob puts the minute of the run, since 1970, behind
// its own name.
func cronJobOf(job string) string {
	i := strings.LastIndex(job, "-")
	if i <= 0 {
		return ""
	}
	const from, until = 25_000_000, 60_000_000 // the years 2017 and 2084, which leaves out dates such as 20261118
	if minute, err := strconv.Atoi(job[i+1:]); err != nil || minute < from || minute > until {
		return ""
	}
	return job[:i]
}

// unmanaged is a workload that is not moved, with the labels of its pods.
type unmanaged struct {
	kind, name string
	labels     map[string]string
	onDelete   bool
}

// adviceFor is what the user has to do to move a workload.
func (p *planner) adviceFor(namespace string, u unmanaged) string {
	choice := usage.Choose(p.Inventory.Namespaces[namespace].Labels, u.labels)
	match := p.matchOf(choice.Name)
	switch {
	case u.labels[v1.LabelSidecarInject] == "false":
		return "injection is off, so a restart does not move it; change the revision where its pods or their Gateway name it"
	case choice.Name == "":
		return "its labels select no revision, and new pods get no sidecar"
	case p.leadsToTarget(choice, namespace):
		return u.restartAdvice(p.Target.Name)
	case match.revisionMatch == outdated && choice.OfNamespace:
		return fmt.Sprintf("its namespace is left alone by annotation %s", v1.AnnotationSkipMigration)
	case match.revisionMatch == outdated:
		return u.relabelAdvice(p.Target.Name)
	case match.revisionMatch == unknown:
		return fmt.Sprintf("label %s names %s, which is neither a revision nor a tag; correct the label", choice.Label, choice.Name)
	case choice.OfNamespace:
		return "its namespace selects " + match.description
	}
	return fmt.Sprintf("label %s of its pods selects %s", choice.Label, match.description)
}

// restartAdvice is for a workload whose labels lead to the target.
func (u unmanaged) restartAdvice(target string) string {
	cronJob := cronJobOf(u.name)
	switch {
	case u.kind == kindPod:
		return fmt.Sprintf("delete it and create it again, and it starts on %s", target)
	case u.kind == kindCronJob:
		return fmt.Sprintf("its next run starts on %s", target)
	case u.kind == kindJob && cronJob != "":
		return fmt.Sprintf("CronJob %s starts its next run on %s", cronJob, target)
	case u.kind == kindJob:
		return fmt.Sprintf("it ends by itself, and the next Job starts on %s", target)
	case u.kind == kindReplicaSet, u.onDelete:
		return fmt.Sprintf("delete its pods, and new ones start on %s", target)
	}
	return "its next restart picks up the revision"
}

// relabelAdvice is for a workload whose own label names an old revision.
func (u unmanaged) relabelAdvice(target string) string {
	cronJob := cronJobOf(u.name)
	switch {
	case u.kind == kindPod:
		return fmt.Sprintf("delete it and create it again with label %s=%s", v1.LabelRevision, target)
	case u.kind == kindJob && cronJob != "":
		return fmt.Sprintf("set label %s of the pod template of CronJob %s to %s", v1.LabelRevision, cronJob, target)
	case u.kind == kindJob:
		return fmt.Sprintf("it ends by itself; set label %s of the pod template of the next Job to %s", v1.LabelRevision, target)
	case u.kind == kindReplicaSet, u.onDelete:
		return fmt.Sprintf("set label %s of its pod template to %s, and delete its pods", v1.LabelRevision, target)
	}
	return fmt.Sprintf("set label %s of its pod template to %s", v1.LabelRevision, target)
}
