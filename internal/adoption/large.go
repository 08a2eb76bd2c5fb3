package adoption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// largeError is a resource that the hub can keep, and whose Work for a cluster it cannot: a Work quotes it.
type largeError struct {
	cluster string
	err     error
}

func (l *largeError) Error() string {
	return fmt.Sprintf("it is too large for a Work of cluster %s (%v)", l.cluster, l.err)
}

// status is that of the binding of such a resource.
func (l *largeError) status(binding *binding, works map[string]*workv1alpha1.Work, now time.Time) workv1alpha2.ResourceBindingStatus {
	status, _ := aggregate(binding, works, nil, now)
	r := binding.spec.Resource
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	reason := passage.Because(ReasonNotApplied, "%s %s: %v: split it up", r.Kind, name, l)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.ConditionFullyApplied, Status: metav1.ConditionFalse, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: binding.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
	return status
}
