package objects

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

var update = flag.Bool("update", false, "rewrite the objects in testdata")

const (
	testID  = "a1b2c3d4e5"
	testUID = "8f5d1e0a-57a5-4c6e-8a3c-2f1d1f8f0b11"
)

func makeMaterialize() *v1alpha2.Materialize {
	m := &v1alpha2.Materialize{
		ObjectMeta: metav1.ObjectMeta{Name: "mz", Namespace: "shop", UID: testUID, Generation: 1, ResourceVersion: "1"},
		Spec: v1alpha2.MaterializeSpec{SharedSpec: v1alpha2.SharedSpec{
			EnvironmentdImageRef: "materialize/environmentd:v1", BackendSecretName: "backend",
			BalancerdReplicas: ptr.To[int32](2), ConsoleReplicas: ptr.To[int32](2),
			RolloutStrategy: v1alpha2.RolloutWaitUntilReady, RolloutRequestTimeout: "24h", AuthenticatorKind: v1alpha2.AuthenticatorNone,
		}},
	}
	m.Status.ResourceID, m.Status.EnvironmentID = testID, testUID
	return m
}

func changed(change func(*v1alpha2.Materialize)) *v1alpha2.Materialize {
	m := makeMaterialize()
	change(m)
	return m
}

func hashOf(t *testing.T, m *v1alpha2.Materialize) string {
	t.Helper()
	return hash.Of(m)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got); if the new one is right, go test ./internal/rollout/objects -update\n%s", file, diff)
	}
}

// everything has every field of the spec that makes a difference to objects.
func everything() *v1alpha2.Materialize {
	m := makeMaterialize()
	limits := func(memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	s := &m.Spec
	s.EnvironmentdImageRef = "registry.example:5000/materialize/environmentd:v2@sha256:0123"
	s.EnvironmentdExtraArgs = []string{"--log-filter=debug"}
	s.EnvironmentdExtraEnv = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "MZ_PERSIST_BLOB_URL", Value: "file:///tmp"}, {Name: "A", Value: "2"}}
	s.EnvironmentdConnectionRoleArn = "arn:aws:iam::1:role/connection"
	s.EnvironmentdResourceRequirements, s.BalancerdResourceRequirements, s.ConsoleResourceRequirements = limits("8Gi"), limits("1Gi"), limits("256Mi")
	s.EnvironmentdScratchVolumeStorageRequirement = ptr.To(resource.MustParse("100Gi"))
	s.BalancerdReplicas, s.ConsoleReplicas = ptr.To[int32](3), ptr.To[int32](0)
	s.ServiceAccountAnnotations = map[string]string{v1alpha2.AnnotationRoleArn: "arn:aws:iam::1:role/mz"}
	s.ServiceAccountLabels = map[string]string{"team": "data", v1alpha2.LabelApp: "not for the user"}
	s.PodAnnotations = map[string]string{"scrape": "true"}
	s.PodLabels = map[string]string{"team": "data", v1alpha2.LabelGeneration: "not for the user"}
	s.AuthenticatorKind, s.EnableRbac = v1alpha2.AuthenticatorPassword, true
	s.EnvironmentID = "11111111-2222-3333-4444-555555555555"
	s.SystemParameterConfigmapName = "params"
	issuer := &v1alpha2.CertificateIssuerRef{Name: "ca", Kind: "ClusterIssuer", Group: "cert-manager.io"}
	s.InternalCertificateSpec = &v1alpha2.CertificateSpec{IssuerRef: issuer}
	s.BalancerdExternalCertificateSpec = &v1alpha2.CertificateSpec{DNSNames: []string{"sql.example"}, Duration: "24h", RenewBefore: "1h", IssuerRef: issuer}
	s.ConsoleExternalCertificateSpec = &v1alpha2.CertificateSpec{
		IssuerRef:      &v1alpha2.CertificateIssuerRef{Name: "ca"},
		SecretTemplate: &v1alpha2.CertificateSecretTemplate{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
	}
	return m
}

// TestObjects shows all that belongs to an environment, for a person to read and to agree with.
func TestObjects(t *testing.T) {
	for name, m := range map[string]*v1alpha2.Materialize{"least": makeMaterialize(), "everything": everything()} {
		t.Run(name, func(t *testing.T) {
			m.Status.ActiveGeneration = 2
			shared, err := Shared(m, ActiveConfig{Spec: &m.Spec, Image: m.Spec.EnvironmentdImageRef, Selector: NamesOf(m).GenerationLabels(2)})
			if err != nil {
				t.Fatal(err)
			}
			own := ForGeneration(m, 2, NewRecord(m, hashOf(t, m), 2), false)
			var text bytes.Buffer
			for _, object := range append(shared, own...) {
				checkObject(t, object)
				body, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				text.WriteString("---\n")
				text.Write(body)
			}
			golden(t, name+".yaml", text.String())
		})
	}
}

// checkObject: it goes with the environment, is found by its label, and is in the namespace.
func checkObject(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != testUID {
		t.Errorf("%s %s belongs to %v", object.GetKind(), object.GetName(), owner)
	}
	if object.GetLabels()[v1alpha2.LabelResourceID] != testID || object.GetNamespace() != "shop" {
		t.Errorf("%s %s/%s has labels %v", object.GetKind(), object.GetNamespace(), object.GetName(), object.GetLabels())
	}
	if object.GetAnnotations()[v1alpha2.AnnotationApplied] == "" {
		t.Errorf("%s %s does not tell what it was applied from", object.GetKind(), object.GetName())
	}
}

// TestRecord: what a generation was made from can be read again, and has the same hash.
func TestRecord(t *testing.T) {
	for name, m := range map[string]*v1alpha2.Materialize{
		"least":      makeMaterialize(),
		"everything": everything(),
		"forced": changed(func(m *v1alpha2.Materialize) {
			m.Annotations = map[string]string{v1alpha2.AnnotationForceRollout: "again", "other": "annotation"}
		}),
		"to be promoted":   changed(func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = "0123" }),
		"forced by a UUID": changed(func(m *v1alpha2.Materialize) { m.Spec.ForceRollout = v1alpha2.NilUUID }),
	} {
		t.Run(name, func(t *testing.T) {
			objects := ForGeneration(m, 7, NewRecord(m, hashOf(t, m), 7), false)
			kept := ReadRecord(m, 7, objects[0])
			if kept == nil {
				t.Fatal("it cannot be read")
			}
			if hashOf(t, kept.Materialize) != hashOf(t, m) {
				t.Error("the hash is another one")
			}
			again := ForGeneration(m, 7, kept, false)
			for i := range objects {
				if why := Drift(again[i], objects[i]); why != "" {
					t.Errorf("%s: %s", objects[i].GetName(), why)
				}
			}
			if kept.Materialize.Spec.ForcePromote != "" || len(kept.Materialize.Annotations) > 1 {
				t.Errorf("it keeps what is no part of the spec: %+v", kept.Materialize)
			}
		})
	}
}
