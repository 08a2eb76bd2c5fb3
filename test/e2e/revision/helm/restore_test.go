package helm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestEditedObjectsAreRestored(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.istiod("v1.26.0")
	h.install(spec)
	objects := h.render(spec)
	edits := map[string]struct {
		kind string
		edit func(map[string]any)
	}{
		"an image": {"Deployment", func(object map[string]any) {
			containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "elsewhere/pilot"
			_ = unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers")
		}},
		"a label": {"Service", func(object map[string]any) {
			unstructured.RemoveNestedField(object, "metadata", "labels", "app")
		}},
		"a port": {"Service", func(object map[string]any) {
			ports, _, _ := unstructured.NestedSlice(object, "spec", "ports")
			ports[0].(map[string]any)["port"] = int64(15999)
			_ = unstructured.SetNestedSlice(object, ports, "spec", "ports")
		}},
		"a rule more": {"ClusterRole", func(object map[string]any) {
			object["rules"] = append(object["rules"].([]any), map[string]any{
				"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"*"},
			})
		}},
		"a subject more": {"ClusterRoleBinding", func(object map[string]any) {
			object["subjects"] = append(object["subjects"].([]any), map[string]any{
				"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io",
			})
		}},
		"the configuration": {"ConfigMap", func(object map[string]any) {
			data := object["data"].(map[string]any)
			for key := range data {
				data[key] = "broken"
			}
		}},
		"the owner": {"ServiceAccount", func(object map[string]any) {
			unstructured.RemoveNestedField(object, "metadata", "ownerReferences")
		}},
	}
	for name, tc := range edits {
		t.Run(name, func(t *testing.T) {
			h := h.in(t)
			desired := find(t, objects, tc.kind)
			before := h.live(desired)
			h.patch(desired, tc.edit)
			if diff := cmp.Diff([]string{describe(desired)}, h.restoreAll(spec, objects)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			for _, field := range []string{"spec", "data", "rules", "subjects"} {
				if diff := cmp.Diff(before.Object[field], h.live(desired).Object[field]); diff != "" {
					t.Errorf("%s is not what it was (-before +after):\n%s", field, diff)
				}
			}
			if changed := h.restoreAll(spec, objects); changed != nil {
				t.Errorf("once more, these were restored: %v", changed)
			}
		})
	}
}

func TestDeletedObjectsAreRestored(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.istiod("v1.24.0")
	h.install(spec)
	objects := h.render(spec)
	for _, object := range objects {
		if err := h.Delete(t.Context(), h.live(object)); err != nil {
			t.Fatal(err)
		}
	}
	if restored := h.restoreAll(spec, objects); len(restored) != len(objects) {
		t.Errorf("%d of %d objects were restored: %v", len(restored), len(objects), restored)
	}
	h.has(objects, true)
	if changed := h.restoreAll(spec, objects); changed != nil {
		t.Errorf("once more, these were restored: %v", changed)
	}
}

// Whoever saw an object missing may have looked before another uninstalled its release: what came back would stay for ever.
func TestNothingIsRestoredOfAReleaseThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	h.install(spec)
	objects := h.render(spec)
	h.uninstall(spec)
	if restored := h.restoreAll(spec, objects); restored != nil {
		t.Errorf("restored were %v", restored)
	}
	h.has(objects, false)
}

func TestFieldsOfOtherWritersAreKept(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.istiod("v1.24.0")
	h.install(spec)
	objects := h.render(spec)
	h.patch(find(t, objects, "Deployment"), func(object map[string]any) {
		_ = unstructured.SetNestedField(object, int64(3), "spec", "replicas")
		_ = unstructured.SetNestedField(object, "1", "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
		env := containers[0].(map[string]any)["env"].([]any)
		containers[0].(map[string]any)["env"] = append(env, map[string]any{"name": "MORE", "value": "of it"})
		_ = unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers")
	})
	if changed := h.restoreAll(spec, objects); changed != nil {
		t.Errorf("these were restored: %v", changed)
	}
}

// What istiod writes into its webhooks, and when, is its own affair.
func TestWebhookFieldsOfIstiodAreKept(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab")
	h.install(spec)
	webhook := find(t, h.render(spec), "ValidatingWebhookConfiguration")
	if policy := policyOf(h.live(webhook)); policy != "Ignore" {
		t.Fatalf("the failure policy is %s at first", policy)
	}
	theirs := "bW9ieQ=="
	h.patch(webhook, func(object map[string]any) {
		first := object["webhooks"].([]any)[0].(map[string]any)
		first["failurePolicy"] = "Fail"
		first["clientConfig"].(map[string]any)["caBundle"] = theirs
	})
	kept := func(title, bundle string) {
		t.Helper()
		if policy := policyOf(h.live(webhook)); policy != "Fail" {
			t.Errorf("%s: the failure policy is %s", title, policy)
		}
		if got := ofFirstWebhook(h.live(webhook), "clientConfig", "caBundle"); got != bundle {
			t.Errorf("%s: the certificates are %s", title, got)
		}
	}

	if changed := h.restoreAll(spec, h.render(spec)); changed != nil {
		t.Errorf("these were restored: %v", changed)
	}
	kept("compared", theirs)

	h.patch(webhook, func(object map[string]any) {
		first := object["webhooks"].([]any)[0].(map[string]any)
		first["rules"] = []any{}
	})
	if changed := h.restoreAll(spec, h.render(spec)); len(changed) != 1 {
		t.Errorf("these were restored: %v", changed)
	}
	kept("restored", theirs)

	next := and(spec, "bildad")
	h.install(next)
	kept("upgraded", theirs)

	with := and(spec, "bildad")
	with.Values["bundle"] = "YWhhYg=="
	h.install(with)
	kept("upgraded to certificates of the chart", "YWhhYg==")
	h.patch(webhook, func(object map[string]any) {
		object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = theirs
	})
	if changed := h.restoreAll(with, h.render(with)); len(changed) != 1 {
		t.Errorf("these were restored: %v", changed)
	}
	kept("restored to certificates of the chart", "YWhhYg==")

	if err := h.Delete(t.Context(), h.live(webhook), client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	h.restoreAll(with, h.render(with))
	if policy := policyOf(h.live(webhook)); policy != "Ignore" {
		t.Errorf("made anew, with no server that has found it yet, the failure policy is %s", policy)
	}
}

func policyOf(configuration *unstructured.Unstructured) string {
	return ofFirstWebhook(configuration, "failurePolicy")
}

func ofFirstWebhook(configuration *unstructured.Unstructured, field ...string) string {
	first := configuration.Object["webhooks"].([]any)[0].(map[string]any)
	value, _, _ := unstructured.NestedString(first, field...)
	return value
}

// The server of a webhook may write between our look and our apply.
func TestWebhookWrittenConcurrently(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab")
	h.install(spec)
	webhook := find(t, h.render(spec), "ValidatingWebhookConfiguration")
	held := faults.To("validatingwebhookconfigurations.admissionregistration.k8s.io", "patch")
	written := make(chan struct{})
	injector := faults.New(faults.Rule{Match: held, Nth: 1, Action: faults.Hold(written)})
	manager, _ := h.connect(injector.Config(h.config))
	over := make(chan error, 1)
	go func() { over <- manager.Install(t.Context(), and(spec, "bildad")) }()
	wait.Until(t, func(context.Context) error {
		if injector.Log().Count(held) == 0 {
			return errors.New("the webhook is not applied")
		}
		return nil
	})
	h.patch(webhook, func(object map[string]any) {
		object["webhooks"].([]any)[0].(map[string]any)["failurePolicy"] = "Fail"
	})
	close(written)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if policy := policyOf(h.live(webhook)); policy != "Fail" {
		t.Errorf("what was written meanwhile was taken back: the failure policy is %s", policy)
	}
	if tries := injector.Log().Count(held); tries != 2 {
		t.Errorf("it was applied %d times", tries)
	}
}
