package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/operator/foreign"
)

// Admission is a webhook configuration by which the API server refuses writes, because nothing serves its webhooks, or may refuse them.
type Admission struct {
	Kind, Name string
	// Resources that cannot be written, sorted.
	Resources []string
	NotServed []NotServed
	// NotTried are webhooks with a URL of which nobody knows whether they are served.
	NotTried []string
}

// NotServed are webhooks that nothing serves for one cause.
type NotServed struct {
	Why      string
	Webhooks []string
}

// admissionWebhook is one with failurePolicy Fail.
type admissionWebhook struct {
	name   string
	client admissionv1.WebhookClientConfig
	rules  []admissionv1.RuleWithOperations
	// selective holds if it is called for some objects only.
	selective bool
}

// matches tells whether a webhook is called for writes of a resource, or of its status.
func (w admissionWebhook) matches(r schema.GroupResource) bool {
	return slices.ContainsFunc(w.rules, func(rule admissionv1.RuleWithOperations) bool {
		group := slices.Contains(rule.APIGroups, r.Group) || slices.Contains(rule.APIGroups, "*")
		return group && slices.ContainsFunc(rule.Resources, func(name string) bool {
			name, _, _ = strings.Cut(name, "/")
			return name == "*" || name == r.Resource
		})
	})
}

func isSelective(namespaces, objects *metav1.LabelSelector, conditions []admissionv1.MatchCondition) bool {
	selects := func(s *metav1.LabelSelector) bool {
		return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
	}
	return selects(namespaces) || selects(objects) || len(conditions) > 0
}

// isCalledForUpdates tells whether a webhook is called when objects of a resource are updated.
func (w admissionWebhook) isCalledForUpdates(r schema.GroupResource) bool {
	updates := admissionWebhook{rules: slices.DeleteFunc(slices.Clone(w.rules), func(rule admissionv1.RuleWithOperations) bool {
		return !slices.Contains(rule.Operations, admissionv1.Update) && !slices.Contains(rule.Operations, admissionv1.OperationAll) ||
			!slices.ContainsFunc(rule.Resources, func(name string) bool { return name == r.Resource || name == "*" || name == "*/*" })
	})}
	return updates.matches(r)
}

// observeAdmission finds webhook configurations that refuse writes of the kinds of passages: the control plane of another system
// leaves its own when it is scaled to 0.
func (f *Facts) observeAdmission(ctx context.Context, clients kubernetes.Interface, objects dynamic.Interface) {
	configurations := clients.AdmissionregistrationV1()
	validating, err := configurations.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		f.Unknown["admission"] = err.Error()
		return
	}
	mutating, err := configurations.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		f.Unknown["admission"] = err.Error()
		return
	}
	o := admissionObserver{clients, objects}
	for _, c := range validating.Items {
		var webhooks []admissionWebhook
		for _, w := range c.Webhooks {
			if ptr.Deref(w.FailurePolicy, admissionv1.Fail) == admissionv1.Fail {
				webhooks = append(webhooks, admissionWebhook{w.Name, w.ClientConfig, w.Rules, isSelective(w.NamespaceSelector, w.ObjectSelector, w.MatchConditions)})
			}
		}
		f.addAdmission(ctx, o, Admission{Kind: "ValidatingWebhookConfiguration", Name: c.Name}, webhooks)
	}
	for _, c := range mutating.Items {
		var webhooks []admissionWebhook
		for _, w := range c.Webhooks {
			if ptr.Deref(w.FailurePolicy, admissionv1.Fail) == admissionv1.Fail {
				webhooks = append(webhooks, admissionWebhook{w.Name, w.ClientConfig, w.Rules, isSelective(w.NamespaceSelector, w.ObjectSelector, w.MatchConditions)})
			}
		}
		f.addAdmission(ctx, o, Admission{Kind: "MutatingWebhookConfiguration", Name: c.Name}, webhooks)
	}
}

// addAdmission adds a configuration if one of its webhooks for the kinds of passages is not served. Pods are named only then: an
// injector that is not served is a matter of its revision.
func (f *Facts) addAdmission(ctx context.Context, o admissionObserver, a Admission, webhooks []admissionWebhook) {
	for _, w := range webhooks {
		var matched []foreign.Kind
		for _, system := range foreign.Systems() {
			for _, kind := range system.Kinds {
				if w.matches(kind.GroupResource) {
					matched = append(matched, kind)
				}
			}
		}
		if len(matched) == 0 {
			continue
		}
		why, tried, err := o.whyNotServed(ctx, w, matched)
		switch {
		case err != nil:
			f.Unknown["admission"] = err.Error()
			continue
		case !tried:
			a.NotTried = append(a.NotTried, w.name)
			continue
		case why == "":
			continue
		}
		if at := slices.IndexFunc(a.NotServed, func(n NotServed) bool { return n.Why == why }); at >= 0 {
			a.NotServed[at].Webhooks = append(a.NotServed[at].Webhooks, w.name)
		} else {
			a.NotServed = append(a.NotServed, NotServed{Why: why, Webhooks: []string{w.name}})
		}
		for _, kind := range matched {
			a.Resources = append(a.Resources, kind.GroupResource.String())
		}
	}
	if len(a.NotServed) == 0 && len(a.NotTried) == 0 {
		return
	}
	if len(a.NotServed) > 0 && slices.ContainsFunc(webhooks, func(w admissionWebhook) bool { return w.matches(schema.GroupResource{Resource: "pods"}) }) {
		a.Resources = append(a.Resources, "pods")
	}
	slices.Sort(a.Resources)
	a.Resources = slices.Compact(a.Resources)
	f.Admission = append(f.Admission, a)
}

// admissionObserver finds out whether webhooks are served.
type admissionObserver struct {
	clients kubernetes.Interface
	objects dynamic.Interface
}

// whyNotServed is why nothing serves a webhook; empty if something does. Nobody knows if that could not be tried.
func (o admissionObserver) whyNotServed(ctx context.Context, w admissionWebhook, kinds []foreign.Kind) (why string, tried bool, err error) {
	at := w.client.Service
	if at == nil {
		return o.tryWrite(ctx, w, kinds)
	}
	service, err := o.clients.CoreV1().Services(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("Service %s/%s does not exist", at.Namespace, at.Name), true, nil
	case err != nil:
		return "", false, err
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return o.tryWrite(ctx, w, kinds)
	}
	slices, err := o.clients.DiscoveryV1().EndpointSlices(at.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + at.Name})
	if err != nil {
		return "", false, err
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				return "", true, nil
			}
		}
	}
	return fmt.Sprintf("Service %s/%s has no ready endpoint", at.Namespace, at.Name), true, nil
}

// tryWrite has the API server call a webhook, by a dry run that changes nothing: only the API server knows whether it reaches a URL.
// That takes an object to write to, and a webhook that is called for updates and dry runs.
func (o admissionObserver) tryWrite(ctx context.Context, w admissionWebhook, kinds []foreign.Kind) (why string, tried bool, err error) {
	for _, kind := range kinds {
		if !w.isCalledForUpdates(kind.GroupResource) {
			continue
		}
		for _, version := range kind.Versions {
			resource := o.objects.Resource(kind.WithVersion(version))
			list, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", false, err
			}
			if len(list.Items) == 0 {
				break
			}
			object := list.Items[0]
			_, err = resource.Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && strings.Contains(err.Error(), fmt.Sprintf("failed calling webhook %q", w.name)) {
				return "the API server does not reach it: " + err.Error(), true, nil
			}
			// Something else may have refused the write before this webhook was called, or it may not be called for this object.
			tried = tried || err == nil && !w.selective
			break
		}
	}
	return "", tried, nil
}
