package adoption_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

const resolution = "work.karmada.io/conflict-resolution"

// parse reads an object.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return object
}

func deployment(name string, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
			},
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func annotated(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { annotate(d, key, value) }
}

func annotate(object client.Object, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		c.Data[data[i]] = data[i+1]
	}
	return c
}

// policy takes all resources of a kind to the first member, unless something else is said.
func policy(apiVersion, kind string, changes ...func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}},
			Placement:         to(member1),
		},
	}
	for _, change := range changes {
		change(&p.Spec)
	}
	return p
}

func to(clusters ...string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
}

func everywhere(p *policyv1alpha1.PropagationSpec) { p.Placement = to(member1, member2) }

func overwrite(p *policyv1alpha1.PropagationSpec) {
	p.ConflictResolution = policyv1alpha1.ConflictOverwrite
}

func preserve(p *policyv1alpha1.PropagationSpec) { p.PreserveResourcesOnDeletion = ptr.To(true) }

func suspend(p *policyv1alpha1.PropagationSpec) {
	p.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
}

// digest is how names and marks tell apart what would look the same.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}
