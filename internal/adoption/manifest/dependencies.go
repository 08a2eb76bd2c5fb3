package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// Dependencies are the resources that the pods of a workload cannot start without: by kind, and then by name.
func Dependencies(workload *unstructured.Unstructured) ([]model.TemplateKey, error) {
	path, runs := podSpecPaths[workload.GroupVersionKind().GroupKind().String()]
	if !runs {
		return nil, nil
	}
	fields, found, err := unstructured.NestedMap(workload.Object, path...)
	if err != nil || !found {
		return nil, err
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		return nil, fmt.Errorf("read the pods of %s %s: %w", workload.GetKind(), model.NameOf(workload), err)
	}
	all := podDependencies{namespace: workload.GetNamespace(), found: map[model.TemplateKey]bool{}}
	all.addPod(&spec)
	return slices.SortedFunc(maps.Keys(all.found), func(a, b model.TemplateKey) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Name, b.Name))
	}), nil
}

type podDependencies struct {
	namespace string
	found     map[model.TemplateKey]bool
}

func (n *podDependencies) add(kind, name string) {
	if name == "" {
		return
	}
	n.found[model.TemplateKey{Kind: corev1.SchemeGroupVersion.WithKind(kind), ObjectKey: types.NamespacedName{Namespace: n.namespace, Name: name}}] = true
}

func (n *podDependencies) addPod(spec *corev1.PodSpec) {
	// Every namespace has its own ServiceAccount default.
	if spec.ServiceAccountName != "default" {
		n.add("ServiceAccount", spec.ServiceAccountName)
	}
	for _, s := range spec.ImagePullSecrets {
		n.add("Secret", s.Name)
	}
	for i := range spec.Volumes {
		n.addVolume(&spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			n.addContainer(&containers[i])
		}
	}
}

func (n *podDependencies) addVolume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		n.add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		n.add("Secret", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		n.add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			n.add("ConfigMap", s.ConfigMap.Name)
		}
		if s.Secret != nil {
			n.add("Secret", s.Secret.Name)
		}
	}
}

func (n *podDependencies) addContainer(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			n.add("ConfigMap", from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			n.add("Secret", from.SecretRef.Name)
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			continue
		}
		if ref := v.ValueFrom.ConfigMapKeyRef; ref != nil {
			n.add("ConfigMap", ref.Name)
		}
		if ref := v.ValueFrom.SecretKeyRef; ref != nil {
			n.add("Secret", ref.Name)
		}
	}
}
