package workload

import (
	"fmt"
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
		if asked.priority, err = strconv.Atoi(text); err != nil || asked.priority < v1.MinMigrationBatch || asked.priority > v1.MaxMigrationBatch {
			return overrides{}, unreadable(v1.AnnotationMigrationBatch,
				fmt.Sprintf("a whole number from %d to %d", v1.MinMigrationBatch, v1.MaxMigrationBatch))
		}
	}
	if text, found := w.Annotations[v1.AnnotationReadinessTimeout]; found {
		if asked.timeout, err = v1.Duration(text).Parse(); err != nil || asked.timeout <= 0 {
			return asked, unreadable(v1.AnnotationReadinessTimeout, "a duration such as 10m")
		}
	}
	return asked, nil
}

// skipsNamespace tells whether a namespace is left alone, with its workloads. The reason names an invalid annotation.
func (o Observed) skipsNamespace(name string) (bool, *passage.Reason) {
	text, found := o.Inventory.Namespaces[name].Annotations[v1.AnnotationSkipMigration]
	if !found {
		return false, nil
	}
	skip, err := strconv.ParseBool(text)
	if err != nil {
		return false, passage.NewReason(v1.ReasonInvalidAnnotation, `annotation %s of Namespace %s is %q, and should be "true" or "false"`,
			v1.AnnotationSkipMigration, name, text)
	}
	return skip, nil
}

// timeouts are how long workloads may take to become ready: usual without an annotation, and limit with any.
type timeouts struct{ usual, limit time.Duration }

func (o Observed) timeouts() timeouts {
	settings, err := o.settings()
	if err != nil {
		return timeouts{v1.DefaultReadinessTimeout, v1.DefaultMaxReadinessTimeout}
	}
	return timeouts{settings.ReadinessTimeout, settings.MaxReadinessTimeout}
}

// of is the readiness timeout of a workload. Invalid annotations are refused before a move starts.
func (t timeouts) of(w *inventory.Workload) time.Duration {
	if asked, err := overridesOf(w); err == nil && asked.timeout > 0 {
		return min(asked.timeout, max(t.limit, t.usual))
	}
	return t.usual
}

// capReason tells that the annotation of a workload asks for more time than any workload gets, or nil.
func (t timeouts) capReason(w *inventory.Workload) *passage.Reason {
	if asked, err := overridesOf(w); err != nil || asked.timeout <= t.of(w) {
		return nil
	}
	return passage.NewReason(v1.ReasonTimeoutCapped, "annotation %s is %s, above batched.maxReadinessTimeout; %s is used",
		v1.AnnotationReadinessTimeout, w.Annotations[v1.AnnotationReadinessTimeout], t.of(w))
}

// overdueReason is why later batches do not wait for a workload.
func (t timeouts) overdueReason(w *inventory.Workload, istio string) passage.Reason {
	return passage.Because(v1.ReasonOverdue,
		"not ready after %s, the readinessTimeout of Istio %s; annotation %s gives it %s, and the next batches do not wait",
		t.usual, istio, v1.AnnotationReadinessTimeout, t.of(w))
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
