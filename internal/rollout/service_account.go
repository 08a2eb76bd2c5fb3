package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// ServiceAccount is one that a spec names. Whoever describes the pods that use it can act as it, so that it has to allow that.
type ServiceAccount struct {
	Exists bool
	// Allowed holds for a ServiceAccount with the annotation, or that belongs to the Materialize.
	Allowed bool
	// Err is why it could not be read.
	Err error
}

// accountRefusal is why a spec cannot use the ServiceAccount that it names.
type accountRefusal struct {
	code    v1alpha2.Reason
	message string
}

func (r *accountRefusal) Error() string { return r.message }

// namedAccount is the ServiceAccount that a spec names, empty for the one that Fairlead makes.
func namedAccount(m *v1alpha2.Materialize) string {
	if m.Status.ResourceID != "" && m.Spec.ServiceAccountName == objects.NamesOf(m).Environmentd() {
		return ""
	}
	return m.Spec.ServiceAccountName
}

// refusesAccount is why the ServiceAccount that the spec names may not be used, nil if it may.
func (o Observed) refusesAccount() *accountRefusal {
	m := o.Materialize
	name := namedAccount(m)
	account := o.ServiceAccounts[name]
	allow := fmt.Sprintf("kubectl -n %s annotate serviceaccount %s %s=true", m.Namespace, name, v1alpha2.AnnotationAllowMaterialize)
	switch {
	case name == "" || account.Allowed:
		return nil
	case account.Err != nil:
		return &accountRefusal{v1alpha2.ReasonNotReadable, fmt.Sprintf(
			"cannot read ServiceAccount %s/%s of spec.serviceAccountName, which has to allow its use: %v", m.Namespace, name, account.Err)}
	case !account.Exists:
		return &accountRefusal{v1alpha2.ReasonNotFound, fmt.Sprintf(
			"ServiceAccount %s/%s of spec.serviceAccountName does not exist: create it, and allow its use with `%s`, or remove spec.serviceAccountName",
			m.Namespace, name, allow)}
	}
	return &accountRefusal{v1alpha2.ReasonNotAllowed, fmt.Sprintf(
		"ServiceAccount %s/%s of spec.serviceAccountName does not have the annotation %s: \"true\": allow its use with `%s`, or remove spec.serviceAccountName",
		m.Namespace, name, v1alpha2.AnnotationAllowMaterialize, allow)}
}

// runsAccount tells whether a generation runs with a ServiceAccount already.
func (o Observed) runsAccount(name string) bool {
	for _, g := range o.Generations {
		if g.StatefulSet != nil && g.StatefulSet.Spec.Template.Spec.ServiceAccountName == name {
			return true
		}
	}
	return false
}

// reportAccount has the status say that the ServiceAccount may not be used, for as long as that is so.
func reportAccount(status *v1alpha2.MaterializeStatus, o Observed, now metav1.Time) {
	refused := o.refusesAccount()
	if refused == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha2.ConditionServiceAccountAllowed)
		return
	}
	message := "nothing is rolled out: " + refused.message
	if active := o.Active(); active != nil {
		message = fmt.Sprintf("generation %d goes on as it is, and nothing is rolled out: %s", active.Number, refused.message)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha2.ConditionServiceAccountAllowed, Status: metav1.ConditionFalse, Reason: string(refused.code), Message: message,
		ObservedGeneration: o.Materialize.Generation, LastTransitionTime: now,
	})
}
