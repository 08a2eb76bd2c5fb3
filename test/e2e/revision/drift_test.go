package revision_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// installed is an object that belongs to a control plane or a tag.
type installed struct {
	*world
	schema.GroupVersionKind
	client.ObjectKey
}

func (i installed) String() string { return i.Kind + " " + i.ObjectKey.String() }

func (i installed) get(ctx context.Context) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(i.GroupVersionKind)
	return live, i.Get(ctx, i.ObjectKey, live)
}

// content is what an object is, without who wrote it, when, and what others have to say about it.
func content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	// Given out in turn, or by controllers.
	for _, path := range [][]string{
		{"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	return object.Object
}

// edit changes an object as somebody with kubectl would, until nobody was faster.
func (i installed) edit(t testing.TB, change func(map[string]any)) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		live, err := i.get(ctx)
		if err != nil {
			return err
		}
		before := live.DeepCopy()
		change(live.Object)
		if cmp.Equal(before.Object, live.Object) {
			t.Fatalf("that changes nothing about %s", i)
		}
		return i.Update(ctx, live, client.FieldOwner("somebody"))
	})
}

// at is what is under a path, in which numbers are indexes of lists.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}

// set puts a value into a field, or removes the field if there is none.
func set(value any, path ...any) func(map[string]any) {
	return func(object map[string]any) {
		inner, field := at(object, path[:len(path)-1]...).(map[string]any), path[len(path)-1].(string)
		if value == nil {
			delete(inner, field)
		} else {
			inner[field] = value
		}
	}
}

var (
	deployments   = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	services      = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	configMaps    = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	accounts      = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	clusterRoles  = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	roleBindings  = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	bindings      = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}
	autoscalers   = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	mutatingHooks = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}
	customs       = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	checkingHooks = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
)

// controlPlane is a revision that is installed in a namespace, and a tag for it.
type controlPlane struct {
	*world
	namespace, name string
	istio           *v1.Istio
	tag             *v1.IstioRevisionTag
}

func (w *world) controlPlane(t testing.TB, version string) controlPlane {
	t.Helper()
	c := controlPlane{world: w, namespace: w.namespace(t), name: shortName(t)}
	c.istio = harness.Create(t, w, inPlace(c.name, c.namespace, version))
	c.tag = harness.Create(t, w, makeTag(c.name+"-tag", v1.IstioKind, c.name))
	ready(t, w, c.istio)
	w.points(t, c.tag, c.name)
	return c
}

// of names one of its objects: REV, TAG and NS stand for the names that differ.
func (c controlPlane) of(kind schema.GroupVersionKind, name string) installed {
	key := client.ObjectKey{Name: strings.NewReplacer("REV", c.name, "TAG", c.tag.Name, "NS", c.namespace).Replace(name)}
	switch kind {
	case deployments, services, configMaps, accounts, roleBindings, autoscalers:
		key.Namespace = c.namespace
	}
	return installed{c.world, kind, key}
}

const (
	istiodsHook = "istio-sidecar-injector-REV-NS"
	tagsHook    = "istio-revision-tag-TAG-NS"
)

func TestEditedAndDeletedObjectsAreRestored(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	c := w.controlPlane(t, "v1.31.0")
	// An empty selector would have the webhook asked about the pods of other tests.
	matchesNothing := map[string]any{"matchLabels": map[string]any{"example.org/matches": "nothing"}}
	cases := map[string]struct {
		object installed
		// edit is nil for an object that is deleted.
		edit func(map[string]any)
	}{
		"image":                  {c.of(deployments, "istiod-REV"), set("elsewhere/pilot:0", "spec", "template", "spec", "containers", 0, "image")},
		"port":                   {c.of(services, "istiod-REV"), set(int64(15999), "spec", "ports", 0, "port")},
		"all of the data":        {c.of(configMaps, "istio-REV"), set(map[string]any{"mesh": "{}"}, "data")},
		"data that is missing":   {c.of(configMaps, "istio-sidecar-injector-REV"), set(nil, "data", "config")},
		"rules":                  {c.of(clusterRoles, "istiod-clusterrole-REV-NS"), set([]any{}, "rules")},
		"subject":                {c.of(bindings, "istiod-clusterrole-REV-NS"), set("somebody", "subjects", 0, "name")},
		"limit":                  {c.of(autoscalers, "istiod-REV"), set(int64(99), "spec", "maxReplicas")},
		"selector of a webhook":  {c.of(mutatingHooks, istiodsHook), set(matchesNothing, "webhooks", 0, "namespaceSelector")},
		"service of a webhook":   {c.of(checkingHooks, "istio-validator-REV-NS"), set("elsewhere", "webhooks", 0, "clientConfig", "service", "name")},
		"selector of the tag":    {c.of(mutatingHooks, tagsHook), set(matchesNothing, "webhooks", 1, "namespaceSelector")},
		"the label that tells":   {c.of(clusterRoles, "istiod-gateway-controller-REV-NS"), set(nil, "metadata", "labels", v1.LabelPassage)},
		"the owner":              {c.of(bindings, "istiod-gateway-controller-REV-NS"), set(nil, "metadata", "ownerReferences")},
		"deleted account":        {c.of(accounts, "istiod-REV"), nil},
		"deleted role":           {c.of(clusterRoles, "istio-reader-clusterrole-REV-NS"), nil},
		"deleted binding":        {c.of(roleBindings, "istiod-REV"), nil},
		"deleted Service of tag": {c.of(services, "istiod-revision-tag-TAG"), nil},
	}
	before := map[string]map[string]any{}
	for name, tc := range cases {
		live, err := tc.object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before[name] = content(live)
	}
	// All at once: what is restored must not depend on what else has to be.
	for _, tc := range cases {
		if tc.edit != nil {
			tc.object.edit(t, tc.edit)
			continue
		}
		live, err := tc.object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.delete(t, live)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.object.becomes(t, before[name]) })
	}
	ready(t, w, c.istio)
	t.Run("deleted webhooks and records", func(t *testing.T) { c.losesWebhooksAndRecords(t) })
}

// becomes waits until an object is what it was.
func (i installed) becomes(t testing.TB, want map[string]any) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		live, err := i.get(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, content(live)); diff != "" {
			return fmt.Errorf("%s is not what it was (-want +got):\n%s", i, diff)
		}
		return nil
	})
}

func (c controlPlane) losesWebhooksAndRecords(t *testing.T) {
	w := c.world
	var deleted []installed
	for _, hook := range []string{istiodsHook, tagsHook} {
		deleted = append(deleted, c.of(mutatingHooks, hook))
	}
	deleted = append(deleted, c.of(deployments, "istiod-REV"))
	for _, object := range deleted {
		live, err := object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.delete(t, live)
		object.becomes(t, content(live))
	}
	ready(t, w, c.istio)

	t.Log("somebody deletes what Helm knows")
	before, err := w.releases(t.Context(), c.namespace)
	if err != nil {
		t.Fatal(err)
	}
	var records corev1.SecretList
	if err := w.List(t.Context(), &records, client.InNamespace(c.namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	for i := range records.Items {
		w.delete(t, &records.Items[i])
	}
	wait.Until(t, func(ctx context.Context) error {
		after, err := w.releases(ctx, c.namespace)
		delete(before, "fairlead-base")
		delete(after, "fairlead-base")
		if diff := cmp.Diff(before, after); diff != "" {
			err = errors.Join(err, fmt.Errorf("the releases are not what they were (-want +got):\n%s", diff))
		}
		return err
	})
	for _, object := range deleted {
		if _, err := object.get(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// What others must write stays as they write it: the certificates of webhooks, what happens when they fail, and the
// replicas that an autoscaler decides on.
func TestFieldsOfOtherWritersAreKept(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	c := w.controlPlane(t, "v1.24.0")
	ca := base64.StdEncoding.EncodeToString(w.Config().CAData)
	type field struct {
		object installed
		value  any
		path   []any
	}
	var fields []field
	add := func(object installed, value any, path ...any) {
		fields = append(fields, field{object, value, path})
	}
	for _, object := range []installed{
		c.of(mutatingHooks, istiodsHook), c.of(mutatingHooks, tagsHook), c.of(checkingHooks, "istio-validator-REV-NS"),
	} {
		live, err := object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range live.Object["webhooks"].([]any) {
			policy := "Ignore"
			if at(live.Object, "webhooks", i, "failurePolicy") == policy {
				policy = "Fail"
			}
			add(object, ca, "webhooks", i, "clientConfig", "caBundle")
			add(object, policy, "webhooks", i, "failurePolicy")
		}
		add(object, "theirs", "metadata", "labels", "example.org/label")
	}
	add(c.of(deployments, "istiod-REV"), int64(2), "spec", "replicas")
	for _, f := range fields {
		f.object.edit(t, set(f.value, f.path...))
	}
	stay := func(when string) {
		t.Helper()
		for _, f := range fields {
			live, err := f.object.get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := at(live.Object, f.path...); got != f.value {
				t.Errorf("%s, %v of %s is %v", when, f.path, f.object, got)
			}
		}
	}

	// What is restored after them shows that they have been looked at.
	for _, hook := range []string{istiodsHook, tagsHook} {
		object := c.of(mutatingHooks, hook)
		live, err := object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		object.edit(t, set(map[string]any{}, "webhooks", 0, "objectSelector"))
		object.becomes(t, content(live))
	}
	stay("after something else was restored")

	harness.Change(t, w, c.istio, func(istio *v1.Istio) { istio.Spec.Version = "v1.31.1" })
	ready(t, w, c.istio)
	w.points(t, c.tag, c.name)
	wait.Until(t, func(ctx context.Context) error {
		releases, err := w.releases(ctx, c.namespace)
		if releases[c.name+"-istiod"] != "deployed v1.31.1" || releases[c.tag.Name+"-revisiontag"] != "deployed v1.31.1" {
			err = errors.Join(err, fmt.Errorf("the releases are %v", releases))
		}
		return err
	})
	stay("after an upgrade")
}
