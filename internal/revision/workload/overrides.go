package workload

import (
	"strconv"
	"time"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// overrides are the per-workload settings in the annotations of a workload.
type overrides struct {
	skip     bool
	priority int
	// timeout is zero where that of the Istio applies.
	timeout time.Duration
}

// overridesOf reads the annotations of a workload. The reason names an invalid annotation: not moving a
// workload is better than ignoring its settings.
func overridesOf(w *inventory.Workload) (overrides, *passage.Reason) {
	var asked overrides
	var err error
	unreadable := func(annotation, want string) *passage.Reason {
		return passage.NewReason(v1.ReasonInvalidAnnotation, "annotation %s of %s is %q, and should be %s",
			annotation, objectOf(w), w.Annotations[annotation], want)
	}
	if text, found := w.Annotations[v1.AnnotationSkipMigration]; found {
		if asked.skip, err = strconv.ParseBool(text); err != nil {
			return asked, unreadable(v1.AnnotationSkipMigration, `"true" or "false"`)
		}
	}
	if asked.skip {
		return asked, nil
	}
	if text, found := w.Annotations[v1.AnnotationMigrationBatch]; found {
		if asked.priority, err = strconv.Atoi(text); err != nil {
			return asked, unreadable(v1.AnnotationMigrationBatch, "a whole number such as 3")
		}
	}
	if text, found := w.Annotations[v1.AnnotationReadinessTimeout]; found {
		if asked.timeout, err = v1.Duration(text).Parse(); err != nil || asked.timeout <= 0 {
			return asked, unreadable(v1.AnnotationReadinessTimeout, "a duration such as 10m")
		}
	}
	return asked, nil
}

// timeoutOf is the readiness timeout of a workload. Invalid annotations are refused before a move starts.
func timeoutOf(w *inventory.Workload, usual time.Duration) time.Duration {
	if asked, err := overridesOf(w); err == nil && asked.timeout > 0 {
		return asked.timeout
	}
	return usual
}

const (
	kindDaemonSet   = "DaemonSet"
	kindDeployment  = "Deployment"
	kindNamespace   = "Namespace"
	kindStatefulSet = "StatefulSet"
)

func objectOf(w *inventory.Workload) passage.Object {
	owner := w.Owner()
	return passage.Object{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}
}
