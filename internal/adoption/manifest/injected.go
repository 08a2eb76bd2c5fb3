package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// keepInjected copies from the live object what controllers and admission of its cluster have added to lists of the manifest, and
// the CA bundles that the manifest leaves empty.
func keepInjected(want, live *unstructured.Unstructured) {
	switch want.GroupVersionKind().GroupKind().String() {
	case "ServiceAccount":
		for _, field := range accountLists {
			addItems(want.Object, live.Object, "name", field)
		}
	case "Pod":
		addItems(want.Object, live.Object, "name", "spec", "volumes")
		for _, field := range containerLists {
			addMounts(want, live, field)
		}
	}
	has := map[string]any{}
	eachClientConfig(live, func(key string, config map[string]any) { has[key] = config["caBundle"] })
	eachClientConfig(want, func(key string, config map[string]any) {
		if isEmptyBundle(config["caBundle"]) && !isEmptyBundle(has[key]) {
			config["caBundle"] = has[key]
		}
	})
}

// RemoveInjected removes from a live object what keepInjected would keep: nothing of it is drift.
func RemoveInjected(live, manifest *unstructured.Unstructured) {
	if live.GroupVersionKind().GroupKind().String() == "ServiceAccount" {
		for _, field := range accountLists {
			removeOtherItems(live, manifest, field)
		}
	}
	empty := map[string]bool{}
	eachClientConfig(manifest, func(key string, config map[string]any) { empty[key] = isEmptyBundle(config["caBundle"]) })
	eachClientConfig(live, func(key string, config map[string]any) {
		if empty[key] {
			delete(config, "caBundle")
		}
	})
}

// removeInjected removes from a template what the hub has added to it, and every cluster adds itself.
func removeInjected(template *unstructured.Unstructured) {
	if template.GroupVersionKind().GroupKind().String() == "Pod" {
		removeTokenVolumes(template)
	}
	if !isInjected(template) {
		return
	}
	eachClientConfig(template, func(_ string, config map[string]any) { delete(config, "caBundle") })
}

// accountLists are the lists of a ServiceAccount that its cluster adds to.
var accountLists = []string{"secrets", "imagePullSecrets"}

var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// addItems appends to a list the items of the live one that have another key.
func addItems(want, live map[string]any, key string, path ...string) {
	have, _, err := unstructured.NestedSlice(want, path...)
	if err != nil {
		return
	}
	named := keysOf(have, key)
	added := false
	others, _, _ := unstructured.NestedSlice(live, path...)
	for _, o := range others {
		item, _ := o.(map[string]any)
		if name, ok := item[key].(string); ok && !named[name] {
			have, added = append(have, item), true
		}
	}
	if added {
		_ = unstructured.SetNestedSlice(want, have, path...)
	}
}

// addMounts appends to the containers of a list the mounts that the live ones have at other paths.
func addMounts(want, live *unstructured.Unstructured, list string) {
	containers, _, err := unstructured.NestedSlice(want.Object, "spec", list)
	if err != nil || len(containers) == 0 {
		return
	}
	byName := map[string]map[string]any{}
	others, _, _ := unstructured.NestedSlice(live.Object, "spec", list)
	for _, o := range others {
		container, _ := o.(map[string]any)
		if name, ok := container["name"].(string); ok && byName[name] == nil {
			byName[name] = container
		}
	}
	for _, c := range containers {
		container, _ := c.(map[string]any)
		if name, ok := container["name"].(string); ok && byName[name] != nil {
			addItems(container, byName[name], "mountPath", "volumeMounts")
			delete(byName, name)
		}
	}
	_ = unstructured.SetNestedSlice(want.Object, containers, "spec", list)
}

// removeOtherItems removes the items of a list whose names the manifest does not have.
func removeOtherItems(live, manifest *unstructured.Unstructured, field string) {
	said, found, err := unstructured.NestedSlice(manifest.Object, field)
	items, _, _ := unstructured.NestedSlice(live.Object, field)
	if !found || err != nil || len(items) == 0 {
		return
	}
	named := keysOf(said, "name")
	kept := make([]any, 0, len(items))
	for _, i := range items {
		item, _ := i.(map[string]any)
		if name, ok := item["name"].(string); !ok || named[name] {
			kept = append(kept, i)
		}
	}
	_ = unstructured.SetNestedSlice(live.Object, kept, field)
}

func keysOf(items []any, key string) map[string]bool {
	keys := map[string]bool{}
	for _, i := range items {
		item, _ := i.(map[string]any)
		if name, ok := item[key].(string); ok {
			keys[name] = true
		}
	}
	return keys
}

// removeTokenVolumes removes the volume with a token of the hub that admission has added to a Pod, and its mounts.
func removeTokenVolumes(pod *unstructured.Unstructured) {
	tokens := map[string]bool{}
	filterItems(pod.Object, func(volume map[string]any) bool {
		name, _ := volume["name"].(string)
		if volume["projected"] != nil && strings.HasPrefix(name, "kube-api-access-") {
			tokens[name] = true
		}
		return !tokens[name]
	}, "spec", "volumes")
	for _, list := range containerLists {
		containers, _, err := unstructured.NestedSlice(pod.Object, "spec", list)
		if err != nil || len(tokens) == 0 || len(containers) == 0 {
			continue
		}
		for _, c := range containers {
			container, _ := c.(map[string]any)
			filterItems(container, func(mount map[string]any) bool {
				name, _ := mount["name"].(string)
				return !tokens[name]
			}, "volumeMounts")
		}
		_ = unstructured.SetNestedSlice(pod.Object, containers, "spec", list)
	}
}

// filterItems keeps some items of a list, and removes the list if there are none.
func filterItems(object map[string]any, keep func(map[string]any) bool, path ...string) {
	items, _, err := unstructured.NestedSlice(object, path...)
	if err != nil || len(items) == 0 {
		return
	}
	var kept []any
	for _, i := range items {
		if item, ok := i.(map[string]any); !ok || keep(item) {
			kept = append(kept, i)
		}
	}
	switch {
	case len(kept) == len(items):
	case len(kept) == 0:
		unstructured.RemoveNestedField(object, path...)
	default:
		_ = unstructured.SetNestedSlice(object, kept, path...)
	}
}

// eachClientConfig calls a function for each part of an object that has the CA bundle of a server, with a key that finds the same
// part in another version of the object. Changes of the part are changes of the object.
func eachClientConfig(object *unstructured.Unstructured, do func(key string, config map[string]any)) {
	part := func(path ...string) {
		if config, found, err := unstructured.NestedFieldNoCopy(object.Object, path...); err == nil && found {
			if config, ok := config.(map[string]any); ok {
				do("", config)
			}
		}
	}
	switch object.GroupVersionKind().GroupKind().String() {
	case "MutatingWebhookConfiguration.admissionregistration.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io":
		webhooks, _ := object.Object["webhooks"].([]any)
		seen := map[string]bool{}
		for _, w := range webhooks {
			webhook, _ := w.(map[string]any)
			name, _ := webhook["name"].(string)
			config, ok := webhook["clientConfig"].(map[string]any)
			if ok && !seen[name] {
				seen[name] = true
				do(name, config)
			}
		}
	case "CustomResourceDefinition.apiextensions.k8s.io":
		part("spec", "conversion", "webhook", "clientConfig")
	case "APIService.apiregistration.k8s.io":
		part("spec")
	}
}

// isEmptyBundle holds for a CA bundle that is not set, or a placeholder of no certificates.
func isEmptyBundle(bundle any) bool {
	text, isText := bundle.(string)
	return bundle == nil || isText && (text == "" || text == "Cg==")
}

// isInjected holds for an object whose CA bundle a controller of its cluster sets.
func isInjected(object *unstructured.Unstructured) bool {
	for key := range object.GetAnnotations() {
		switch key {
		case "cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
			"service.beta.openshift.io/inject-cabundle":
			return true
		}
	}
	return false
}
