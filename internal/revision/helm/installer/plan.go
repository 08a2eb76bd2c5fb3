package installer

import (
	"cmp"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// What can be done about a release.
const (
	ActionInstall   passage.Action = "install"
	ActionUpgrade   passage.Action = "upgrade"
	ActionRestore   passage.Action = "restore"
	ActionUninstall passage.Action = "uninstall"
	// ActionRun waits for the installed control plane to serve.
	ActionRun passage.Action = "run"
)

// Object names a release in plans.
func Object(namespace, name string) passage.Object {
	return passage.Object{APIVersion: "helm.sh/v4", Kind: "Release", Namespace: namespace, Name: name}
}

// Steps are what is left to do about a release; none when it is as wanted. Reported tells whether the latest spec was once
// fully applied.
func Steps(r Release, reported bool) []passage.Step {
	step := passage.Step{Object: Object(r.Namespace, r.Name), Action: ActionInstall, State: passage.Pending}
	if r.Wanted != nil {
		step.To = r.Wanted.ChartVersion
	}
	if r.State.Exists {
		step.Action = ActionUpgrade
	}
	switch {
	case r.chartChanged():
		step.State, step.To, step.Reason = passage.Failed, r.Chart.Version, Because(r.Err)
	case r.IsUpToDate(reported):
		return restoreSteps(r)
	case r.Err != nil:
		step.Reason = Because(r.Err)
		step.State = passage.Failed
		if step.Reason.Code == passage.Code(v1.ReasonChartsUnavailable) {
			step.State = passage.Running
		}
	case !r.State.Exists:
		step.Reason = passage.Because(v1.ReasonNotInstalled, "release %s does not exist", r.Name)
	case !r.State.Deployed():
		step.Reason = passage.Because(v1.ReasonReleaseBroken,
			"release %s was left in status %s by a failed or interrupted operation", r.Name, r.State.Status)
	default:
		step.Reason = passage.Because(v1.ReasonReleaseDiffers, "release %s was made from another chart or other values", r.Name)
	}
	return []passage.Step{step}
}

// UninstallStep removes a release.
func UninstallStep(namespace, name string, why passage.Reason) passage.Step {
	return passage.Step{Object: Object(namespace, name), Action: ActionUninstall, State: passage.Pending, Reason: why}
}

// BlockedState is Failed for a blocker that a user must remove, and Running for one that resolves itself.
func BlockedState(blocker passage.Reason) passage.State {
	switch v1.Reason(blocker.Code) {
	case v1.ReasonIstiodNotReady, v1.ReasonNamespaceNotFound:
		return passage.Running
	}
	return passage.Failed
}

func restoreSteps(r Release) []passage.Step {
	var steps []passage.Step
	for _, drift := range r.Drift {
		step := passage.Step{Object: objectOf(drift.Desired), Action: ActionRestore, State: passage.Pending}
		if drift.Field == "" {
			step.Reason = passage.Because(v1.ReasonObjectMissing, "deleted by another client")
		} else {
			step.Reason = passage.Because(v1.ReasonObjectEdited, "another client has changed %s", drift.Field)
		}
		steps = append(steps, step)
	}
	return steps
}

// Paused tells whether a resource is paused.
func Paused(object metav1.Object) bool {
	return object.GetAnnotations()[fairlead.AnnotationPaused] == "true"
}

// WhilePaused is the hold of a resource that is paused, and says how to go on.
func WhilePaused(kind string, object metav1.Object) *passage.Reason {
	if !Paused(object) {
		return nil
	}
	return passage.Hold(v1.ReasonPaused, "paused by annotation %s; resume with `fairlead resume %s %s`",
		fairlead.AnnotationPaused, strings.ToLower(kind), object.GetName())
}

// UnavailableError means that a chart could not be loaded.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Because explains an error of getting, rendering or installing a chart. Only errors that read the same every time are
// quoted: a status that changes with each attempt would be written with each attempt.
func Because(err error) passage.Reason {
	var taken *release.OwnedByOthersError
	switch {
	case errors.As(err, new(*charts.NotFoundError)):
		return passage.Because(v1.ReasonVersionNotFound, "%v", err)
	case errors.As(err, new(*ChangedChartError)):
		return passage.Because(v1.ReasonChartChanged, "%v", err)
	case errors.As(err, new(*charts.UnverifiedError)):
		return passage.Because(v1.ReasonChartNotVerified, "%v", err)
	case errors.As(err, new(*UnavailableError)):
		return passage.Because(v1.ReasonChartsUnavailable, "%v", err)
	case errors.As(err, new(*release.RenderError)):
		return passage.Because(v1.ReasonTemplateError, "%v; nothing more is tried until the spec changes", err)
	case errors.As(err, &taken):
		return passage.Because(v1.ReasonOwnedByOthers, "%v; remove that object, or use another name", taken)
	case errors.As(err, new(refusedBefore)):
		return passage.Because(v1.ReasonRefused, "%v", err)
	case release.Refused(err):
		return passage.Because(v1.ReasonRefused, "%v; %s", release.Cause(err), refusalRemedy)
	case apierrors.IsForbidden(err):
		return passage.Because(v1.ReasonReconcileError, "%v", release.Cause(err))
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Code/100 == 4 && !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) {
		return passage.Because(v1.ReasonReconcileError, "%v; installing will be tried again", release.Cause(err))
	}
	return passage.Because(v1.ReasonReconcileError, "installing failed (%s) and will be tried again; details are in the operator's log",
		ServerReason(err))
}

// ServerReason is why the API server has not fulfilled a request, in a text that is the same at each attempt.
func ServerReason(err error) string {
	return cmp.Or(string(apierrors.ReasonForError(err)), "no answer from the API server")
}
