package hash

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

const least = `
environmentdImageRef: materialize/environmentd:v0.150.0
backendSecretName: backend
`

func TestSame(t *testing.T) {
	cases := map[string]struct{ a, b string }{
		"null and absent":                        {"podLabels: null", ""},
		"null and absent, in a structure":        {"internalCertificateSpec: {dnsNames: [a], issuerRef: null}", "internalCertificateSpec: {dnsNames: [a]}"},
		"an empty text":                          {`serviceAccountName: ""`, ""},
		"an empty list":                          {"environmentdExtraArgs: []", ""},
		"an empty map":                           {"podAnnotations: {}", ""},
		"an empty structure":                     {"environmentdResourceRequirements: {}", ""},
		"a structure of empty ones":              {"internalCertificateSpec: {secretTemplate: {labels: {}}}", ""},
		"false":                                  {"enableRbac: false", ""},
		"default strategy":                       {"rolloutStrategy: WaitUntilReady", ""},
		"default timeout":                        {"rolloutRequestTimeout: 24h", ""},
		"default timeout, written otherwise":     {"rolloutRequestTimeout: 1440m", ""},
		"default authenticator":                  {"authenticatorKind: None", ""},
		"order of keys":                          {"podLabels: {a: one, b: two}", "podLabels: {b: two, a: one}"},
		"binary and plain quantity":              {"environmentdScratchVolumeStorageRequirement: 1Gi", "environmentdScratchVolumeStorageRequirement: 1073741824"},
		"milli and decimal quantity":             {"environmentdResourceRequirements: {limits: {cpu: 500m}}", `environmentdResourceRequirements: {limits: {cpu: "0.5"}}`},
		"exponent and suffix":                    {"environmentdResourceRequirements: {limits: {memory: 2e3}}", "environmentdResourceRequirements: {limits: {memory: 2k}}"},
		"number and text":                        {"environmentdResourceRequirements: {requests: {cpu: 2}}", `environmentdResourceRequirements: {requests: {cpu: "2000m"}}`},
		"minutes and hours":                      {"rolloutRequestTimeout: 60m", "rolloutRequestTimeout: 1h"},
		"minutes and hours, deeper":              {"internalCertificateSpec: {duration: 90m}", "internalCertificateSpec: {duration: 1h30m0s}"},
		"the nil UUID for forceRollout":          {"forceRollout: 00000000-0000-0000-0000-000000000000", ""},
		"the nil UUID for environmentId":         {"environmentId: 00000000-0000-0000-0000-000000000000", ""},
		"case of a UUID":                         {"forceRollout: ABCDEF00-0000-0000-0000-00000000000F", "forceRollout: abcdef00-0000-0000-0000-00000000000f"},
		"an empty value of a variable":           {`environmentdExtraEnv: [{name: A, value: ""}]`, "environmentdExtraEnv: [{name: A}]"},
		"a key that must be there":               {"environmentdExtraEnv: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: false}}}]", "environmentdExtraEnv: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]"},
		"a field of the version that it is of":   {"environmentdExtraEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: p, apiVersion: v1}}}]", "environmentdExtraEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: p}}}]"},
		"a divisor that a client wrote for none": {`environmentdExtraEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "0"}}}]`, "environmentdExtraEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]"},
		"a divisor of one":                       {`environmentdExtraEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1"}}}]`, "environmentdExtraEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := parse(t, least+c.a), parse(t, least+c.b)
			if diff := cmp.Diff(string(canonical(a)), string(canonical(b))); diff != "" {
				t.Error(diff)
			}
			if hashOf(t, a) != hashOf(t, b) {
				t.Error("the hashes differ")
			}
			if rolls, doesNot := Changes(a, b); rolls != nil || doesNot != nil {
				t.Errorf("changes: %v, %v", rolls, doesNot)
			}
		})
	}
}

func TestDifferent(t *testing.T) {
	cases := map[string]struct{ a, b string }{
		"order of a list":                       {"environmentdExtraArgs: [a, b]", "environmentdExtraArgs: [b, a]"},
		"an empty item":                         {`environmentdExtraArgs: [a, ""]`, "environmentdExtraArgs: [a]"},
		"one item or two":                       {`environmentdExtraArgs: ["a,b"]`, "environmentdExtraArgs: [a, b]"},
		"a label without a value":               {`podLabels: {a: ""}`, ""},
		"a label or an annotation":              {"podLabels: {a: b}", "podAnnotations: {a: b}"},
		"a limit of nothing":                    {`environmentdResourceRequirements: {limits: {cpu: "0"}}`, ""},
		"a volume of nothing":                   {`environmentdScratchVolumeStorageRequirement: "0"`, ""},
		"thousands and kibis":                   {"environmentdScratchVolumeStorageRequirement: 1k", "environmentdScratchVolumeStorageRequirement: 1Ki"},
		"no time at all":                        {"rolloutRequestTimeout: 0s", ""},
		"a key that may be missing":             {"environmentdExtraEnv: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]", "environmentdExtraEnv: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]"},
		"case of what is no UUID":               {"serviceAccountName: A", "serviceAccountName: a"},
		"text that looks like the end of one":   {`serviceAccountName: 'a","systemParameterConfigmapName":"b'`, "{serviceAccountName: a, systemParameterConfigmapName: b}"},
		"durations that are none":               {"rolloutRequestTimeout: soon", "rolloutRequestTimeout: later"},
		"a UUID of the spec, here or elsewhere": {"forceRollout: abcdef00-0000-0000-0000-00000000000f", "environmentId: abcdef00-0000-0000-0000-00000000000f"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := parse(t, c.a), parse(t, c.b)
			if hashOf(t, a) == hashOf(t, b) {
				t.Errorf("both are hashed as %s", canonical(a))
			}
			if rolls, _ := Changes(a, b); rolls == nil {
				t.Error("no change rolls")
			}
		})
	}
}

func TestAnnotation(t *testing.T) {
	bare := parse(t, least)
	one, two := annotate(parse(t, least), "1"), annotate(parse(t, least), "2")
	if hashOf(t, bare) == hashOf(t, one) || hashOf(t, one) == hashOf(t, two) {
		t.Error("another value of the annotation is no other hash")
	}
	if hashOf(t, annotate(parse(t, least), "")) != hashOf(t, bare) {
		t.Error("an empty annotation is not like none")
	}

	other := parse(t, least)
	other.Annotations = map[string]string{"team": "data"}
	if hashOf(t, other) != hashOf(t, bare) {
		t.Error("an annotation of somebody else rolls")
	}

	// A value that ends the text of an empty spec as one with a field would.
	want := `{"annotation":"x\",\"spec\":{\"enableRbac\":true}}","spec":{}}`
	if got := string(canonical(annotate(parse(t, "{}"), `x","spec":{"enableRbac":true}}`))); got != want {
		t.Errorf("canonical %s, want %s", got, want)
	}

	rolls, doesNot := Changes(bare, one)
	if diff := cmp.Diff([]Change{{"metadata.annotations[materialize.cloud/force-rollout]", "", "1", true}}, rolls); diff != "" || doesNot != nil {
		t.Errorf("%s, and %v", diff, doesNot)
	}
}

func TestIdentityIsOutsideTheHash(t *testing.T) {
	bare, known := parse(t, least), parse(t, least)
	known.UID, known.Generation, known.ResourceVersion = "u", 7, "42"
	known.Status.EnvironmentID = "abcdef00-0000-0000-0000-00000000000f"
	known.Status.ResourceID = "abcdefghij"
	if hashOf(t, bare) != hashOf(t, known) {
		t.Error("what Fairlead fills in rolls")
	}
}

func TestWith(t *testing.T) {
	m := parse(t, least)
	algorithms[2] = func(m *v1alpha2.Materialize) string { return "2:" + m.Spec.EnvironmentdImageRef }
	defer delete(algorithms, 2)

	if h, err := With(2, m); err != nil || h != "2:materialize/environmentd:v0.150.0" {
		t.Errorf("by the second algorithm: %q, %v", h, err)
	}
	older, err := With(1, m)
	if err != nil || older != hashOf(t, m) {
		t.Errorf("by the first beside a second: %q, %v", older, err)
	}
	if h, err := With(Version, m); err != nil || h != hashOf(t, m) {
		t.Errorf("with the current version: %q, %v", h, err)
	}

	_, err = With(7, m)
	if err == nil || !strings.Contains(err.Error(), "shop/mz") || !strings.Contains(err.Error(), "rolloutHashVersion is 7") {
		t.Errorf("with a version that nobody knows: %v", err)
	}
	if _, found := algorithms[Version]; !found {
		t.Errorf("no algorithm has the current version %d", Version)
	}
}
