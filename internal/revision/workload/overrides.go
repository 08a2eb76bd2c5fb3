package workload

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// overrides are the per-workload settings in the annotations of a Deployment.
type overrides struct {
	skip     bool
	priority int
	// timeout is zero where that of the Istio applies.
	timeout time.Duration
}

// overridesOf reads the annotations of a Deployment. The reason names an invalid annotation: not moving a
// workload is better than ignoring its settings.
func overridesOf(d *appsv1.Deployment) (overrides, *passage.Reason) {
	var w overrides
	var err error
	unreadable := func(annotation, want string) *passage.Reason {
		return passage.NewReason(v1.ReasonInvalidAnnotation, "annotation %s of Deployment %s/%s is %q, and should be %s",
			annotation, d.Namespace, d.Name, d.Annotations[annotation], want)
	}
	if text, found := d.Annotations[v1.AnnotationSkipMigration]; found {
		if w.skip, err = strconv.ParseBool(text); err != nil {
			return w, unreadable(v1.AnnotationSkipMigration, `"true" or "false"`)
		}
	}
	if w.skip {
		return w, nil
	}
	if text, found := d.Annotations[v1.AnnotationMigrationBatch]; found {
		if w.priority, err = strconv.Atoi(text); err != nil {
			return w, unreadable(v1.AnnotationMigrationBatch, "a whole number such as 3")
		}
	}
	if text, found := d.Annotations[v1.AnnotationReadinessTimeout]; found {
		if w.timeout, err = v1.Duration(text).Parse(); err != nil || w.timeout <= 0 {
			return w, unreadable(v1.AnnotationReadinessTimeout, "a duration such as 10m")
		}
	}
	return w, nil
}

// timeoutOf is the readiness timeout of a Deployment. Invalid annotations are refused before a move starts.
func timeoutOf(d *appsv1.Deployment, usual time.Duration) time.Duration {
	if w, err := overridesOf(d); err == nil && w.timeout > 0 {
		return w.timeout
	}
	return usual
}

const (
	kindDeployment = "Deployment"
	kindNamespace  = "Namespace"
)

func deploymentObject(namespace, name string) passage.Object {
	return passage.Object{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kindDeployment, Namespace: namespace, Name: name}
}
