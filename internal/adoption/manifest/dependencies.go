package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// podSpecPaths are the paths of the pod spec, by kind.
var podSpecPaths = map[string][]string{
	"Pod":              {"spec"},
	"Deployment.apps":  {"spec", "template", "spec"},
	"StatefulSet.apps": {"spec", "template", "spec"},
	"DaemonSet.apps":   {"spec", "template", "spec"},
	"ReplicaSet.apps":  {"spec", "template", "spec"},
	"Job.batch":        {"spec", "template", "spec"},
	"CronJob.batch":    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// dependencyPaths are the fields of a pod spec that name resources, by the kind of these.
var dependencyPaths = map[string][]string{
	"ConfigMap": {
		"volumes.configMap.name", "volumes.projected.sources.configMap.name",
		"initContainers.envFrom.configMapRef.name", "initContainers.env.valueFrom.configMapKeyRef.name",
		"containers.envFrom.configMapRef.name", "containers.env.valueFrom.configMapKeyRef.name",
	},
	"PersistentVolumeClaim": {"volumes.persistentVolumeClaim.claimName"},
	"Secret": {
		"imagePullSecrets.name", "volumes.secret.secretName", "volumes.projected.sources.secret.name",
		"initContainers.envFrom.secretRef.name", "initContainers.env.valueFrom.secretKeyRef.name",
		"containers.envFrom.secretRef.name", "containers.env.valueFrom.secretKeyRef.name",
	},
	"ServiceAccount": {"serviceAccountName"},
}

// DependencyKinds are the kinds of all resources that Dependencies finds.
func DependencyKinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, kind := range slices.Sorted(maps.Keys(dependencyPaths)) {
		all = append(all, corev1.SchemeGroupVersion.WithKind(kind))
	}
	return all
}

// Dependencies are the resources that the pods of a workload cannot start without: by kind, and then by name.
func Dependencies(workload *unstructured.Unstructured) []model.TemplateKey {
	path, runs := podSpecPaths[workload.GroupVersionKind().GroupKind().String()]
	if !runs {
		return nil
	}
	spec, _, _ := unstructured.NestedFieldNoCopy(workload.Object, path...)
	found := map[model.TemplateKey]bool{}
	for kind, paths := range dependencyPaths {
		for _, path := range paths {
			for _, name := range textsAt(spec, strings.Split(path, ".")) {
				if kind == "ServiceAccount" && name == "default" {
					continue // which every namespace has
				}
				key := types.NamespacedName{Namespace: workload.GetNamespace(), Name: name}
				found[model.TemplateKey{Kind: corev1.SchemeGroupVersion.WithKind(kind), ObjectKey: key}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b model.TemplateKey) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// textsAt are the texts at a path. On the way, a list stands for all of its items.
func textsAt(value any, path []string) (all []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			all = append(all, textsAt(item, path)...)
		}
	case map[string]any:
		if len(path) > 0 {
			return textsAt(value[path[0]], path[1:])
		}
	case string:
		if len(path) == 0 && value != "" {
			return []string{value}
		}
	}
	return all
}
