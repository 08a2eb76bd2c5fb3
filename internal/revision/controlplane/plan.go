package controlplane

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// Plan decides what to do about an IstioRevision.
func Plan(o Observed) passage.Plan {
	plan := passage.Plan{
		Passage: v1.PassageRevision,
		Subject: passage.Object{APIVersion: v1.GroupVersion.String(), Kind: v1.IstioRevisionKind, Name: o.Revision.Name},
		Target:  o.Revision.Spec.Version,
		Steps:   []passage.Step{},
	}
	if o.beingDeleted() {
		if plan.Steps = append(plan.Steps, removalSteps(o)...); len(plan.Steps) == 0 {
			plan.Hold = installer.RemainingFinalizers(o.Revision)
		}
		return plan
	}
	plan.Hold = installer.WhilePaused(v1.IstioRevisionKind, o.Revision)
	if blocker := passage.FirstHold(o, whileNameIsTaken, whileNamespaceIsMissing); blocker != nil {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: installer.Object(o.Istiod.Namespace, o.Istiod.Name),
			Action: installer.ActionInstall,
			To:     o.Revision.Spec.Version,
			State:  installer.BlockedState(*blocker),
			Reason: *blocker,
		})
		return plan
	}
	if o.ManagesBase {
		plan.Steps = append(plan.Steps, installer.Steps(o.Base, o.reported())...)
	}
	// A control plane needs the base release of its version or a newer one. One that is installed does not wait for it.
	waits := !coversVersion(o.Base.State, o.Revision.Spec.Version) && !o.Istiod.IsUpToDate(o.reported())
	// A release that cannot be installed does not wait.
	if o.Istiod.Err == nil && (waits || !o.Istiod.State.Exists && len(plan.Steps) > 0) {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: installer.Object(o.Istiod.Namespace, o.Istiod.Name),
			Action: installer.ActionInstall,
			To:     o.Revision.Spec.Version,
			State:  passage.Running,
			Reason: passage.Because(v1.ReasonNotInstalled, "waiting for release %s, which installs Istio's CRDs%s",
				BaseRelease, o.describeBaseManager()),
		})
		plan.Steps = append(plan.Steps, obsoleteRemovals(o)...)
		return plan
	}
	if o.IsDefault {
		plan.Steps = append(plan.Steps, installer.Steps(o.Validator, o.reported())...)
	}
	istiod := installer.Steps(o.Istiod, o.reported())
	plan.Steps = append(plan.Steps, istiod...)
	if len(istiod) == 0 {
		plan.Steps = append(plan.Steps, runStep(o))
	}
	plan.Steps = append(plan.Steps, obsoleteRemovals(o)...)
	return plan
}

// obsoleteRemovals uninstall shared releases from former namespaces. New before old: the new ones must be installed first.
func obsoleteRemovals(o Observed) []passage.Step {
	successors := map[string]installer.Release{}
	if o.ManagesBase {
		successors[BaseRelease] = o.Base
	}
	if o.IsDefault {
		successors[ValidatorRelease] = o.Validator
	}
	var steps []passage.Step
	for _, obsolete := range o.ObsoleteReleases {
		step := installer.UninstallStep(obsolete.Namespace, obsolete.Name,
			passage.Because(v1.ReasonReleaseDiffers, "the release belongs to another namespace now, or is not needed any more"))
		if successor, moves := successors[obsolete.Name]; moves && !successor.Installed() {
			step.State = passage.Running
		}
		steps = append(steps, step)
	}
	return steps
}

// describeBaseManager names the revision that installs the base release.
func (o Observed) describeBaseManager() string {
	switch {
	case o.ManagesBase:
		return ""
	case o.BaseManager == "":
		return "; no IstioRevision can install that release at the moment"
	}
	return "; IstioRevision " + o.BaseManager + " installs that release: see its status"
}

// coversVersion tells whether a control plane of a version finds the CRDs that it needs.
func coversVersion(base release.State, version string) bool {
	return base.Deployed() && newerVersion(base.ChartVersion, version) == base.ChartVersion
}

func whileNameIsTaken(o Observed) *passage.Reason {
	if o.Tag == nil || !NameHolder(o.Revision, o.Tag) {
		return nil
	}
	return passage.Hold(v1.ReasonNameAlreadyExists,
		"the name is already used by IstioRevisionTag %s; delete the tag, or give the Istio or IstioRevision another name", o.Tag.Name)
}

func whileNamespaceIsMissing(o Observed) *passage.Reason {
	if o.Namespace {
		return nil
	}
	return passage.Hold(v1.ReasonNamespaceNotFound, "namespace %s does not exist; create it, and the installation goes on",
		o.Revision.Spec.Namespace)
}

func removalSteps(o Observed) []passage.Step {
	var steps []passage.Step
	if o.Istiod.State.Exists {
		steps = append(steps, installer.UninstallStep(o.Istiod.Namespace, o.Istiod.Name,
			passage.Because(v1.ReasonBeingDeleted, "IstioRevision %s is being deleted", o.Revision.Name)))
	}
	for _, obsolete := range o.ObsoleteReleases {
		steps = append(steps, installer.UninstallStep(obsolete.Namespace, obsolete.Name,
			passage.Because(v1.ReasonBeingDeleted, "no other IstioRevision needs the release; Istio's CRDs are kept")))
	}
	return steps
}

func runStep(o Observed) passage.Step {
	serves, why := serving(o)
	step := passage.Step{
		Object: installer.Object(o.Istiod.Namespace, o.Istiod.Name),
		Action: installer.ActionRun,
		To:     o.Revision.Spec.Version,
		State:  passage.Running,
		Reason: why,
	}
	if serves {
		step.State = passage.Done
	}
	return step
}

// serving tells whether istiod is ready. Charts that install none, for a remote control plane, are ready.
func serving(o Observed) (bool, passage.Reason) {
	if !o.Namespace {
		// The cache may still have the Deployments of a deleted namespace.
		return false, passage.Because(v1.ReasonIstiodNotReady, "namespace %s does not exist", o.Revision.Spec.Namespace)
	}
	if o.DeploymentsErr != nil {
		return false, readErrorReason(o.DeploymentsErr)
	}
	for _, key := range o.Istiod.Deployments {
		if !slices.ContainsFunc(o.Deployments, func(d appsv1.Deployment) bool {
			return types.NamespacedName{Namespace: d.Namespace, Name: d.Name} == key
		}) {
			return false, passage.Because(v1.ReasonIstiodNotReady, "Deployment %s does not exist", key)
		}
	}
	for _, d := range o.Deployments {
		if ready, why := deploymentServes(d); !ready {
			return false, passage.Because(v1.ReasonIstiodNotReady, "Deployment %s/%s %s", d.Namespace, d.Name, why)
		}
	}
	return true, passage.Because(v1.ReasonIstiodReady, "istiod serves")
}

// readErrorReason has a stable message.
func readErrorReason(err error) passage.Reason {
	if apierrors.IsForbidden(err) {
		return passage.Because(v1.ReasonReadinessCheckFailed, "%v; let the operator read Deployments, as the Fairlead chart does", err)
	}
	return passage.Because(v1.ReasonReadinessCheckFailed,
		"reading istiod's Deployment failed (%s) and will be tried again; details are in the operator's log", installer.ServerReason(err))
}

func deploymentServes(d appsv1.Deployment) (bool, string) {
	want, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	switch {
	case s.ObservedGeneration < d.Generation:
		return false, "has changed, and the Deployment controller has not observed the change yet"
	case want == 0:
		return false, "is scaled to zero"
	case s.UpdatedReplicas < want:
		return false, fmt.Sprintf("has %d of %d pods of its latest version", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		return false, fmt.Sprintf("still has %d old pods", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < max(want, s.UpdatedReplicas):
		return false, fmt.Sprintf("has %d of %d pods ready", s.AvailableReplicas, max(want, s.UpdatedReplicas))
	}
	return true, ""
}
