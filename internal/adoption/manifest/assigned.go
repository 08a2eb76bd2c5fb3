package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// assigningManagers are field managers whose values hold in their own cluster only.
var assigningManagers = []string{"kube-controller-manager", "kube-scheduler"}

// unownedFields are the fields of a template that no client owns by managedFields: the API server assigned them, as it does with the
// clusterIP of a Service. Without managedFields there are none. They are read when the first is asked for, because most kinds have no
// field that a cluster assigns.
type unownedFields struct {
	template *unstructured.Unstructured
	owned    *fieldpath.Set
	err      error
}

func (f *unownedFields) has(parts ...any) bool {
	if f.owned == nil {
		if f.owned, f.err = ownedFields(f.template); f.err != nil {
			f.owned = fieldpath.NewSet()
		}
	}
	path, err := fieldpath.MakePath(parts...)
	return err == nil && !f.owned.Empty() && !f.owned.Has(path)
}

// ownedFields are the fields that clients own by managedFields, but for the controllers of a cluster.
func ownedFields(template *unstructured.Unstructured) (*fieldpath.Set, error) {
	owned := fieldpath.NewSet()
	for _, entry := range template.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" || slices.Contains(assigningManagers, entry.Manager) {
			continue
		}
		var set fieldpath.Set
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read managedFields of %s %s: %w", template.GetKind(), template.GetName(), err)
		}
		owned = owned.Union(&set)
	}
	return owned, nil
}

// RemoveAssigned removes the fields that a cluster assigns, as far as the predicate holds for them.
func RemoveAssigned(m *unstructured.Unstructured, assigned func(path ...any) bool) {
	switch m.GroupVersionKind().GroupKind().String() {
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
			if assigned("spec", field) && !IsHeadless(m) {
				unstructured.RemoveNestedField(m.Object, "spec", field)
			}
		}
		ports, _, _ := unstructured.NestedSlice(m.Object, "spec", "ports")
		for _, p := range ports {
			port, ok := p.(map[string]any)
			if ok && assigned("spec", "ports", fieldpath.KeyByFields("port", port["port"], "protocol", protocolOf(port)), "nodePort") {
				delete(port, "nodePort")
			}
		}
		if len(ports) > 0 {
			_ = unstructured.SetNestedSlice(m.Object, ports, "spec", "ports")
		}
	case "Job.batch":
		if manual, _, _ := unstructured.NestedBool(m.Object, "spec", "manualSelector"); manual {
			return
		}
		unstructured.RemoveNestedField(m.Object, "spec", "selector")
		for _, label := range jobLabels {
			unstructured.RemoveNestedField(m.Object, "spec", "template", "metadata", "labels", label)
		}
	case "PersistentVolumeClaim":
		if assigned("spec", "volumeName") {
			unstructured.RemoveNestedField(m.Object, "spec", "volumeName")
		}
	case "ServiceAccount":
		if assigned("secrets") {
			unstructured.RemoveNestedField(m.Object, "secrets")
		}
		filterItems(m.Object, func(secret map[string]any) bool {
			return !assigned("secrets", fieldpath.KeyByFields("name", secret["name"]))
		}, "secrets")
	case "Secret":
		if IsServiceAccountToken(m) {
			unstructured.RemoveNestedField(m.Object, "data")
		}
	case "Pod":
		if assigned("spec", "nodeName") {
			unstructured.RemoveNestedField(m.Object, "spec", "nodeName")
		}
	}
	removeInjected(m)
}

// IsAssignedAnnotation holds for annotations in which the controllers of a cluster keep their own state.
func IsAssignedAnnotation(key string) bool {
	switch key {
	case "kubernetes.io/service-account.uid", "deprecated.daemonset.template.generation", "volume.kubernetes.io/selected-node",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner":
		return true
	}
	return domainOf(key) == "deployment.kubernetes.io" || domainOf(key) == "pv.kubernetes.io"
}

// IsServiceAccountToken holds for a Secret with a token that is valid in its own cluster only.
func IsServiceAccountToken(secret *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(secret.Object, "type")
	return kind == "kubernetes.io/service-account-token"
}

// jobLabels are the labels that the API server adds to the pod template of a Job.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

func IsHeadless(service *unstructured.Unstructured) bool {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	return ip == "None"
}

// protocolOf a port of a Service.
func protocolOf(port map[string]any) string {
	if protocol, _ := port["protocol"].(string); protocol != "" {
		return protocol
	}
	return "TCP"
}

// AssignedPaths are the fields that a cluster assigns if the manifest does not set them, by kind.
var AssignedPaths = map[string][][]string{
	"Service": {
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "ipFamilies"}, {"spec", "ipFamilyPolicy"},
		{"spec", "healthCheckNodePort"}, {"spec", "loadBalancerClass"},
	},
	"PersistentVolumeClaim": {{"spec", "volumeName"}, {"spec", "storageClassName"}, {"spec", "volumeMode"}},
	"PersistentVolume":      {{"spec", "claimRef"}},
	"Pod": {
		{"spec", "nodeName"}, {"spec", "serviceAccountName"}, {"spec", "serviceAccount"}, {"spec", "imagePullSecrets"}, {"spec", "tolerations"},
		{"spec", "priority"}, {"spec", "preemptionPolicy"},
	},
	"Job.batch":      {{"spec", "selector"}},
	"ServiceAccount": {{"secrets"}, {"imagePullSecrets"}},
}
