package istio

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// maxUnresolved bounds the names in the message of a condition, each with its first users.
const maxUnresolved = 3

// resolvedRefs is the condition that labels name revisions or tags that do not exist, or nil if there are none.
func resolvedRefs(unresolved []usage.NameUsage) *metav1.Condition {
	if len(unresolved) == 0 {
		return nil
	}
	return &metav1.Condition{
		Type: string(v1.ConditionResolvedRefs), Status: metav1.ConditionFalse, Reason: string(v1.ReasonRefNotFound),
		Message: DescribeUnresolved(unresolved),
	}
}

// DescribeUnresolved names the first of the names that do not exist, each with its first users, and says what to do.
func DescribeUnresolved(unresolved []usage.NameUsage) string {
	var names []string
	for _, u := range unresolved[:min(len(unresolved), maxUnresolved)] {
		names = append(names, fmt.Sprintf("%s (%s)", u.Name, u.Usage))
	}
	text := strings.Join(names, "; ")
	if more := len(unresolved) - len(names); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "labels name revisions or tags that do not exist, and pods created with them get no sidecar: " + text +
		"; create an IstioRevisionTag of that name, or change the labels"
}

// setResolvedRefs sets the condition, or removes it.
func setResolvedRefs(conditions *[]metav1.Condition, unresolved []usage.NameUsage, set func(metav1.Condition)) {
	if condition := resolvedRefs(unresolved); condition != nil {
		set(*condition)
		return
	}
	meta.RemoveStatusCondition(conditions, string(v1.ConditionResolvedRefs))
}

func (r *reconciler) observeUnresolved(ctx context.Context) ([]usage.NameUsage, error) {
	return Unresolved(ctx, r.Usage, r.live, func(name string) bool { return r.exists(ctx, name) })
}

// Unresolved finds the names that labels refer to, and that belong to no revision, no tag and no webhook of another installation.
// The reader must have the webhooks of all of them.
func Unresolved(ctx context.Context, users *usage.Tracker, live client.Reader, exists func(name string) bool) ([]usage.NameUsage, error) {
	unresolved := users.Unresolved(exists)
	if len(unresolved) == 0 {
		return nil, nil
	}
	// Read only now: a cluster in which all names belong to us needs no list.
	webhooks := &metav1.PartialObjectMetadataList{}
	webhooks.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfigurationList"))
	if err := live.List(ctx, webhooks, client.HasLabels{v1.LabelRevision}); err != nil {
		return nil, fmt.Errorf("list the webhooks of other installations of Istio: %w", err)
	}
	injectors := injectorNames(webhooks.Items)
	var left []usage.NameUsage
	for _, u := range unresolved {
		if !injectors[u.Name] {
			left = append(left, u)
		}
	}
	return left, nil
}

// injectorNames are the names that webhooks inject for: that of the tag or, for one without, that of the revision.
func injectorNames(webhooks []metav1.PartialObjectMetadata) map[string]bool {
	names := map[string]bool{}
	for _, webhook := range webhooks {
		if tag, ok := webhook.Labels[v1.LabelTag]; ok {
			names[tag] = true
		} else {
			names[webhook.Labels[v1.LabelRevision]] = true
		}
	}
	return names
}

// exists tells whether a revision or a tag has a name.
func (r *reconciler) exists(ctx context.Context, name string) bool {
	key := client.ObjectKey{Name: name}
	return r.Cache.Get(ctx, key, &v1.IstioRevisionTag{}) == nil || r.Cache.Get(ctx, key, &v1.IstioRevision{}) == nil
}

// requestsForName enqueues all Istios when the users of a name change that does not exist: each reports them.
func (r *reconciler) requestsForName(ctx context.Context, name string) []ctrl.Request {
	if r.exists(ctx, name) {
		return nil
	}
	return r.allIstios(ctx, nil)
}

func (r *reconciler) allIstios(ctx context.Context, _ client.Object) []ctrl.Request {
	return kube.RequestsMatching(ctx, r.Cache, &v1.IstioList{}, func(*v1.Istio) bool { return true })
}

// comesOrGoes passes objects that are created or deleted.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
