package adoption

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// AnnotationRetainReplicas set to "true" on a resource of the hub leaves the number of replicas to the clusters.
const AnnotationRetainReplicas = "resourcetemplate.karmada.io/retain-replicas"

const annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// manifestOf is a resource of the hub as a Work carries it: what its user has set, and what is to become of an object that is
// there already.
func manifestOf(template *unstructured.Unstructured, resolution policyv1alpha1.ConflictResolution) (*unstructured.Unstructured, error) {
	assigned, err := unownedIn(template)
	if err != nil {
		return nil, err
	}
	m := template.DeepCopy()
	unstructured.RemoveNestedField(m.Object, "status")
	metadata := map[string]any{"name": m.GetName()}
	if namespace := m.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels := foreign(m.GetLabels()); len(labels) > 0 {
		metadata["labels"] = anyMap(labels)
	}
	annotations := m.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key := range annotations {
		if key == annotationLastApplied || domainOf(key) == "fairlead.dev" || assignedByCluster(key) {
			delete(annotations, key)
		}
	}
	annotations[AnnotationConflictResolution] = annotationOf(resolution)
	metadata["annotations"] = anyMap(annotations)
	m.Object["metadata"] = metadata
	forget(m, assigned)
	return m, nil
}

// sent is a manifest as it goes to a cluster, without what is said to Fairlead only.
func sent(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	m := manifest.DeepCopy()
	m.SetAnnotations(foreign(m.GetAnnotations()))
	return m
}

// foreign are the labels or annotations that are not said to Fairlead.
func foreign(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		if d := domainOf(key); d != "fairlead.dev" && d != "karmada.io" && !strings.HasSuffix(d, ".karmada.io") && key != annotationLastApplied {
			kept[key] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func domainOf(key string) string {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return domain
}

func anyMap(of map[string]string) map[string]any {
	m := make(map[string]any, len(of))
	for key, value := range of {
		m[key] = value
	}
	return m
}

// assigners write into resources what is right in their own cluster only.
var assigners = []string{"kube-controller-manager", "kube-scheduler"}

// unownedIn tells what nobody has set in a resource, by who manages which field of it: what the API server assigns itself
// has no owner. Where nothing is known about that, everything was set.
func unownedIn(template *unstructured.Unstructured) (func(path ...any) bool, error) {
	owned := fieldpath.NewSet()
	for _, entry := range template.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" || slices.Contains(assigners, entry.Manager) {
			continue
		}
		var set fieldpath.Set
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read who manages %s %s: %w", template.GetKind(), template.GetName(), err)
		}
		owned = owned.Union(&set)
	}
	if owned.Empty() {
		return func(...any) bool { return false }, nil
	}
	return func(parts ...any) bool {
		path, err := fieldpath.MakePath(parts...)
		return err == nil && !owned.Has(path)
	}, nil
}

// forget removes what the hub's own API server has assigned.
func forget(m *unstructured.Unstructured, assigned func(path ...any) bool) {
	switch m.GroupVersionKind().GroupKind().String() {
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
			if assigned("spec", field) && !headless(m) {
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
	case "Secret":
		if isToken(m) {
			unstructured.RemoveNestedField(m.Object, "data")
		}
	case "Pod":
		if assigned("spec", "nodeName") {
			unstructured.RemoveNestedField(m.Object, "spec", "nodeName")
		}
	}
}

// assignedByCluster holds for the annotations by which the controllers of a cluster remember what they did there.
func assignedByCluster(key string) bool {
	switch key {
	case "kubernetes.io/service-account.uid", "deprecated.daemonset.template.generation", "volume.kubernetes.io/selected-node",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner":
		return true
	}
	return domainOf(key) == "deployment.kubernetes.io" || domainOf(key) == "pv.kubernetes.io"
}

// isToken holds for a Secret whose content is the cluster's own, which no other cluster may have.
func isToken(secret *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(secret.Object, "type")
	return kind == "kubernetes.io/service-account-token"
}

// jobLabels are those that the API server puts on the pods of a Job to select them by.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

func headless(service *unstructured.Unstructured) bool {
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
