package hash

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

const rich = `
environmentdImageRef: registry.example/materialize/environmentd:v0.151.0@sha256:abc
backendSecretName: backend
environmentdExtraArgs: [--log-filter=info, "--announce=a \"quoted\" <b> & ü\tc"]
environmentdExtraEnv:
- {name: PLAIN, value: one}
- {name: NONE}
- {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}
- {name: FIELD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
environmentdConnectionRoleArn: arn:aws:iam::1:role/connect
environmentdResourceRequirements:
  limits: {cpu: 1500m, memory: 4Gi}
  requests: {cpu: "0.25", memory: 512M}
environmentdScratchVolumeStorageRequirement: 10Gi
balancerdResourceRequirements: {limits: {memory: 1Gi}}
balancerdReplicas: 5
consoleReplicas: 0
serviceAccountName: mz
serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn:aws:iam::1:role/mz}
serviceAccountLabels: {team: data}
podAnnotations: {example.com/a: ""}
podLabels: {team: data, tier: one}
forceRollout: ABCDEF00-0000-0000-0000-00000000000F
forcePromote: something
rolloutStrategy: ManuallyPromote
rolloutRequestTimeout: 90m
authenticatorKind: Sasl
enableRbac: true
environmentId: abcdef00-0000-0000-0000-00000000000e
systemParameterConfigmapName: parameters
balancerdExternalCertificateSpec: {dnsNames: [b.example]}
consoleExternalCertificateSpec: {dnsNames: [c.example]}
internalCertificateSpec:
  dnsNames: [x.example, y.example]
  duration: 2160h
  renewBefore: 360h
  issuerRef: {name: ca, kind: ClusterIssuer, group: cert-manager.io}
  secretTemplate: {annotations: {a: b}, labels: {c: d}}
`

// defaulted is least as the API server stores it.
const defaulted = least + `
authenticatorKind: None
balancerdReplicas: 2
consoleReplicas: 2
rolloutRequestTimeout: 24h
rolloutStrategy: WaitUntilReady
`

// TestPinnedHashes fails when existing resources would roll out because Fairlead was upgraded. A new field, a new default
// and a new release of Go or Kubernetes must all leave these hashes as they are. If the algorithm has to change, it becomes
// another version beside this one, and these stay.
func TestPinnedHashes(t *testing.T) {
	cases := map[string]struct {
		spec, annotation string
		want             string
	}{
		"least":     {least, "", "a25c9474ff7ec375b59c499a253574a226ccee612ccdd4a1a7ed693cb6dfa600"},
		"annotated": {least, "2026-08-01", "10590c3356ffa8b490e388c222019b79c2bd4ebfe43621c1c50e2115cde473ed"},
		"defaulted": {defaulted, "", "a25c9474ff7ec375b59c499a253574a226ccee612ccdd4a1a7ed693cb6dfa600"},
		"rich":      {rich, "", "9dc66ca47fd6608bf5d9f6554007223903b92df76c400f0c8e9fdd85fb0a63f1"},
		"both":      {rich, "again \"and\" again", "217834bc6c65d8504fea331332913b18f7d3727ed9b8d7201efd76dfd7e2b62c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := annotate(parse(t, c.spec), c.annotation)
			got, err := With(1, m)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("hash %s, want %s; it is of\n%s", got, c.want, canonical(m))
			}
		})
	}
}

// TestLaterFields is what a later API does to the hash of a spec that does not use it: nothing.
func TestLaterFields(t *testing.T) {
	type deeper struct {
		Size  resource.Quantity `json:"size"`
		Count *int32            `json:"count"`
	}
	type later struct {
		v1alpha2.MaterializeSpec
		Aardvark *deeper            `json:"aardvark"`
		Kind     string             `json:"kind"`
		Map      map[string]deeper  `json:"map"`
		List     []deeper           `json:"list"`
		Wait     *v1alpha2.Duration `json:"wait"`
		Zebra    bool               `json:"zebra"`
	}
	read := readerOf(reflect.TypeFor[later](), "")
	for name, spec := range map[string]string{"least": least, "rich": rich} {
		m := parse(t, spec)
		was := string(specOf(m).appendJSON(nil))
		is := string(read(reflect.ValueOf(later{MaterializeSpec: m.Spec})).appendJSON(nil))
		if was != is {
			t.Errorf("%s: was %s, is %s", name, was, is)
		}
	}
}
