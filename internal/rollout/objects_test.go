package rollout

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// everything has every field of the spec that makes a difference to objects.
func everything() maker {
	m := makeMaterialize().identified()
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
	for name, m := range map[string]maker{"least": makeMaterialize().identified(), "everything": everything()} {
		t.Run(name, func(t *testing.T) {
			m.Status.ActiveGeneration = 2
			shared, err := sharedObjects(m.Materialize, activeConfig{Spec: &m.Spec, Image: m.Spec.EnvironmentdImageRef, Selector: namesOf(m.Materialize).generationLabels(2)})
			if err != nil {
				t.Fatal(err)
			}
			record, err := newRecord(m.Materialize, hashOf(t, m), 2)
			if err != nil {
				t.Fatal(err)
			}
			own, err := objectsOf(m.Materialize, 2, record, false)
			if err != nil {
				t.Fatal(err)
			}
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
	if owner := ownerOf(object); owner == nil || owner.UID != testUID {
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
	for name, m := range map[string]maker{
		"least":            makeMaterialize().identified(),
		"everything":       everything(),
		"forced":           makeMaterialize().identified().annotate(v1alpha2.AnnotationForceRollout, "again").annotate("other", "annotation"),
		"to be promoted":   makeMaterialize().identified().forcePromote("0123"),
		"forced by a UUID": func() maker { m := makeMaterialize().identified(); m.Spec.ForceRollout = v1alpha2.NilUUID; return m }(),
	} {
		t.Run(name, func(t *testing.T) {
			record, err := newRecord(m.Materialize, hashOf(t, m), 7)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := objectsOf(m.Materialize, 7, record, false)
			if err != nil {
				t.Fatal(err)
			}
			g := &Generation{Number: 7}
			if err := g.add(objects[0], hashAlgorithms); err != nil {
				t.Fatal(err)
			}
			if g.Hash != hashOf(t, m) {
				t.Error("the hash is another one")
			}
			again, err := objectsOf(m.Materialize, 7, *g.Record, false)
			if err != nil {
				t.Fatal(err)
			}
			for i := range objects {
				if why := driftReason(again[i], objects[i]); why != "" {
					t.Errorf("%s: %s", objects[i].GetName(), why)
				}
			}
			if g.Record.Materialize.Spec.ForcePromote != "" || len(g.Record.Materialize.Annotations) > 1 {
				t.Errorf("it keeps what is no part of the spec: %+v", g.Record.Materialize)
			}
		})
	}
}

// TestUnreadableRecord: one that tells nothing is as good as none.
func TestUnreadableRecord(t *testing.T) {
	s := seeing(t, makeMaterialize().serving(t, 1, makeMaterialize())).generation(1, makeMaterialize())
	configMap := s.Generations[1].Objects[0]
	configMap.Object["data"] = map[string]any{v1alpha2.RecordSpec: "{"}
	g := &Generation{Number: 1}
	if err := g.add(configMap, hashAlgorithms); err != nil {
		t.Fatal(err)
	}
	if g.Record != nil || g.Hash != "" {
		t.Errorf("it tells %+v", g)
	}
}
