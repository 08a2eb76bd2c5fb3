package release

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hasForeignFields tells whether other clients must write to objects of this kind: istiod sets the CA bundle and the failure
// policy of its webhooks.
func hasForeignFields(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Group == "admissionregistration.k8s.io" &&
		slices.Contains([]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, kind.Kind)
}

// withLiveFields is the object to apply, with the live values of fields that other clients own. The write is conditional on
// the resource version, so that a later write of another client is not reverted.
func withLiveFields(desired, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil || !hasForeignFields(desired) {
		return desired
	}
	merged := mergeLiveFields(desired, live)
	merged.SetResourceVersion(live.GetResourceVersion())
	return merged
}

// mergeLiveFields keeps the live failure policy of each webhook, and its CA bundle unless the chart has one.
func mergeLiveFields(desired, live *unstructured.Unstructured) *unstructured.Unstructured {
	if !hasForeignFields(desired) {
		return desired
	}
	merged := desired.DeepCopy()
	has := map[string]map[string]any{}
	for _, webhook := range webhooks(live) {
		has[nested(webhook, "name")] = webhook
	}
	for _, webhook := range webhooks(merged) {
		theirs, ok := has[nested(webhook, "name")]
		if !ok {
			continue
		}
		if policy := nested(theirs, "failurePolicy"); policy != "" {
			webhook["failurePolicy"] = policy
		}
		bundle := nested(theirs, "clientConfig", "caBundle")
		if bundle != "" && nested(webhook, "clientConfig", "caBundle") == "" {
			if config, ok := webhook["clientConfig"].(map[string]any); ok {
				config["caBundle"] = bundle
			}
		}
	}
	return merged
}

func webhooks(configuration *unstructured.Unstructured) []map[string]any {
	var found []map[string]any
	list, _ := configuration.Object["webhooks"].([]any)
	for _, item := range list {
		if webhook, ok := item.(map[string]any); ok {
			found = append(found, webhook)
		}
	}
	return found
}

func nested(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return text
}
