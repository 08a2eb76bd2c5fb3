package conversion

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// TestPreserved is what the annotation of an object of v1alpha2 has of its spec in v1alpha1.
func TestPreserved(t *testing.T) {
	cases := map[string]struct{ spec, want string }{
		"nothing that v1alpha2 lacks": {"podLabels: {a: b}, forcePromote: h", ""},
		"a request":                   {"requestRollout: " + one, `{"version":1,"spec":{"requestRollout":"` + one + `"}}`},
		"an explicit false":           {"inPlaceRollout: false", `{"version":1,"spec":{"inPlaceRollout":false}}`},
		"no promotion":                {"forcePromote: " + nul, `{"version":1,"spec":{"forcePromote":"` + nul + `"}}`},
		"a role":                      {"environmentdIamRoleArn: r1", `{"version":1,"role":"r1"}`},
		"an empty role":               {"environmentdIamRoleArn: ''", `{"version":1,"spec":{"environmentdIamRoleArn":""}}`},
		"a role beside other annotations": {
			"environmentdIamRoleArn: r1, serviceAccountAnnotations: {a: b}", `{"version":1,"role":"r1"}`,
		},
		"the same role twice": {
			"environmentdIamRoleArn: r1, serviceAccountAnnotations: {eks.amazonaws.com/role-arn: r1}", `{"version":1,"role":"r1"}`,
		},
		"a role that does not count": {
			"environmentdIamRoleArn: r1, serviceAccountAnnotations: {eks.amazonaws.com/role-arn: r2}",
			`{"version":1,"spec":{"environmentdIamRoleArn":"r1"}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			written := object(t, older, "spec: {"+c.spec+"}")
			stored := convert(t, written, newer)
			if got, _ := annotationOf(stored["metadata"], v1alpha2.AnnotationV1alpha1); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			read := convert(t, stored, older)
			if diff := cmp.Diff(asRead(written["spec"]), read["spec"]); diff != "" {
				t.Errorf("read as v1alpha1: %s", diff)
			}
		})
	}
}

// annotated is metadata with the annotation.
func annotated(text string) string {
	return "metadata: {annotations: {fairlead.dev/v1alpha1: '" + text + "'}}\n"
}

// TestReadRole reads the role of an object of v1alpha2 in v1alpha1.
func TestReadRole(t *testing.T) {
	const r2 = "serviceAccountAnnotations: {eks.amazonaws.com/role-arn: r2}"
	same, other := annotated(`{"version":1,"role":"r1"}`), annotated(`{"version":1,"spec":{"environmentdIamRoleArn":"r1"}}`)
	cases := map[string]struct{ stored, want string }{
		"changed in v1alpha2": {same + "spec: {" + r2 + "}", annotated(`{"version":1,"role":"r2"}`) + "spec: {environmentdIamRoleArn: r2, " + r2 + "}"},
		"removed in v1alpha2": {same + "spec: {}", "metadata: {}\nspec: {}"},
		"emptied in v1alpha2": {
			same + "spec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: ''}}",
			"metadata: {}\nspec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: ''}}",
		},
		"replaced in v1alpha2 without the annotation": {"spec: {" + r2 + "}", "spec: {" + r2 + "}"},
		"given twice": {other + "spec: {" + r2 + "}", other + "spec: {environmentdIamRoleArn: r1, " + r2 + "}"},
		"given twice, and the one that counts removed in v1alpha2": {other + "spec: {}", other + "spec: {}"},
		"annotated by a later Fairlead, which alone can read it":   {annotated(`{"version":9,"role":"r1"}`) + "spec: {" + r2 + "}", annotated(`{"version":9,"role":"r1"}`) + "spec: {" + r2 + "}"},
		"annotated by somebody else, with what is no JSON of ours": {annotated("no") + "spec: {" + r2 + "}", annotated("no") + "spec: {" + r2 + "}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stored := object(t, newer, c.stored)
			before := runtime.DeepCopyJSON(stored)
			read := convert(t, stored, older)
			if diff := cmp.Diff(object(t, older, c.want), read); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before["spec"], convert(t, read, newer)["spec"]); diff != "" {
				t.Errorf("there and back: %s", diff)
			}
			if diff := cmp.Diff(before, stored); diff != "" {
				t.Errorf("the input has changed: %s", diff)
			}
		})
	}
}

// TestWriteRole changes a role in v1alpha1 that was written there.
func TestWriteRole(t *testing.T) {
	annotationsOf := func(role string) string {
		return "serviceAccountAnnotations: {eks.amazonaws.com/role-arn: " + role + "}"
	}
	same := annotated(`{"version":1,"role":"r1"}`)
	cases := map[string]struct{ written, want string }{
		"another role":           {"environmentdIamRoleArn: r2, " + annotationsOf("r1"), annotated(`{"version":1,"role":"r2"}`) + "spec: {" + annotationsOf("r2") + "}"},
		"no role, explicitly":    {"environmentdIamRoleArn: '', " + annotationsOf("r1"), annotated(`{"version":1,"spec":{"environmentdIamRoleArn":""}}`) + "spec: {serviceAccountAnnotations: {}}"},
		"no role":                {"podLabels: {a: b}", "metadata: {}\nspec: {podLabels: {a: b}}"},
		"only the field is gone": {annotationsOf("r1"), "metadata: {}\nspec: {" + annotationsOf("r1") + "}"},
		"another annotation":     {"environmentdIamRoleArn: r1, " + annotationsOf("r2"), annotated(`{"version":1,"spec":{"environmentdIamRoleArn":"r1"}}`) + "spec: {" + annotationsOf("r2") + "}"},
		"two other roles":        {"environmentdIamRoleArn: r2, " + annotationsOf("r3"), annotated(`{"version":1,"spec":{"environmentdIamRoleArn":"r2"}}`) + "spec: {" + annotationsOf("r3") + "}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(object(t, newer, c.want), convert(t, object(t, older, same+"spec: {"+c.written+"}"), newer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPreservedRollsNothingOut: the annotation is no part of the hash.
func TestPreservedRollsNothingOut(t *testing.T) {
	hashOf := func(spec string) string {
		stored := convert(t, object(t, older, "spec: {environmentdImageRef: e:1, backendSecretName: b"+spec+"}"), newer)
		m := &v1alpha2.Materialize{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, m); err != nil {
			t.Fatal(err)
		}
		return hash.Of(m)
	}
	if hashOf("") != hashOf(", requestRollout: "+one+", inPlaceRollout: true") {
		t.Error("a request rolls out")
	}
	if hashOf(", environmentdIamRoleArn: r1") != hashOf(", serviceAccountAnnotations: {eks.amazonaws.com/role-arn: r1}") {
		t.Error("a role in another place rolls out")
	}
	if hashOf(", environmentdIamRoleArn: r1") == hashOf(", environmentdIamRoleArn: r2") {
		t.Error("another role does not roll out")
	}
}

// TestCompletedRequest reads lastCompletedRolloutRequest in v1alpha1. It is the current request only if the operator says of the
// latest spec that it is rolled out: scripts wait for that.
func TestCompletedRequest(t *testing.T) {
	const whole = "environmentdImageRef: e:1, backendSecretName: b"
	requested := func(generation int, rest string) string {
		return fmt.Sprintf("metadata: {generation: %d, annotations: {fairlead.dev/v1alpha1: '{\"version\":1,\"spec\":{\"requestRollout\":\"%s\"}%s}'}}\nspec: {%s}\n",
			generation, two, rest, whole)
	}
	upToDate := func(is string, observed int) string {
		return fmt.Sprintf("conditions: [{type: UpToDate, status: '%s', observedGeneration: %d}]", is, observed)
	}
	before := `,"completed":{"request":"` + one + `","hash":"h1"}`
	for name, c := range map[string]struct{ stored, want string }{
		"completed":                            {requested(3, "") + "status: {lastCompletedRolloutHash: h2, requestedRolloutHash: h2, rolloutHashVersion: 1, " + upToDate("True", 3) + "}", two},
		"completed, and another one before":    {requested(3, before) + "status: {lastCompletedRolloutHash: h2, rolloutHashVersion: 1, " + upToDate("True", 3) + "}", two},
		"the same spec again":                  {requested(3, before) + "status: {lastCompletedRolloutHash: h1, rolloutHashVersion: 1, " + upToDate("True", 3) + "}", two},
		"requested, and not seen yet":          {requested(4, before) + "status: {lastCompletedRolloutHash: h1, rolloutHashVersion: 1, " + upToDate("True", 3) + "}", one},
		"under way":                            {requested(4, before) + "status: {lastCompletedRolloutHash: h1, requestedRolloutHash: h2, rolloutHashVersion: 1, " + upToDate("Unknown", 4) + "}", one},
		"under way, the one before is unknown": {requested(4, before) + "status: {lastCompletedRolloutHash: h3, requestedRolloutHash: h2, rolloutHashVersion: 1, " + upToDate("Unknown", 4) + "}", ""},
		"the first one, under way":             {requested(1, "") + "status: {requestedRolloutHash: h2, rolloutHashVersion: 1, " + upToDate("Unknown", 1) + "}", ""},
		"no status yet":                        {requested(1, "") + "status: {}", ""},
		"never requested in v1alpha1":          {"metadata: {generation: 3}\nspec: {" + whole + "}\nstatus: {lastCompletedRolloutHash: h2, rolloutHashVersion: 1, " + upToDate("True", 3) + "}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			stored := object(t, newer, c.stored)
			input := runtime.DeepCopyJSON(stored)
			read := convert(t, stored, older)
			status, _ := read["status"].(map[string]any)
			if got, _ := status[lastCompletedRolloutRequest].(string); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			back := convert(t, read, newer)
			// Whoever applies what is there already changes nothing, the annotation included.
			if diff := cmp.Diff(input["metadata"], back["metadata"]); diff != "" {
				t.Errorf("metadata there and back: %s", diff)
			}
			if diff := cmp.Diff(input["status"], back["status"]); diff != "" {
				t.Errorf("there and back: %s", diff)
			}
			if again := convert(t, back, older); !cmp.Equal(status, again["status"]) {
				t.Errorf("there and back again: %s", cmp.Diff(status, again["status"]))
			}
			if diff := cmp.Diff(input, stored); diff != "" {
				t.Errorf("the input has changed: %s", diff)
			}
		})
	}
}

// TestWriteRequest: who requests the next rollout in v1alpha1 reads the request before as completed, until the next one is.
func TestWriteRequest(t *testing.T) {
	stored := object(t, older, "metadata: {generation: 3}\nspec: {environmentdImageRef: e:1, backendSecretName: b, requestRollout: "+one+"}\n"+
		"status: {lastCompletedRolloutRequest: "+one+", resourcesHash: x, activeGeneration: 1, conditions: [{type: UpToDate, status: 'True', observedGeneration: 3}]}")
	completed := func(o map[string]any) any { return o["status"].(map[string]any)[lastCompletedRolloutRequest] }
	now := convert(t, stored, newer)
	read := runtime.DeepCopyJSON(convert(t, now, older))
	if completed(read) != one {
		t.Fatalf("at rest: %v", completed(read))
	}
	// The API server counts the generation, and leaves the status to the operator.
	read["spec"].(map[string]any)["requestRollout"], read["spec"].(map[string]any)["environmentdImageRef"] = two, "e:2"
	read["metadata"].(map[string]any)["generation"] = int64(4)
	now = runtime.DeepCopyJSON(convert(t, read, newer))
	if got := completed(convert(t, now, older)); got != one {
		t.Errorf("requested: %v", got)
	}
	status := now["status"].(map[string]any)
	status["requestedRolloutHash"], status["conditions"] = "h2", []any{map[string]any{"type": "UpToDate", "status": "Unknown", "observedGeneration": int64(4)}}
	if got := completed(convert(t, now, older)); got != one {
		t.Errorf("under way: %v", got)
	}
	status["lastCompletedRolloutHash"], status["conditions"] = "h2", []any{map[string]any{"type": "UpToDate", "status": "True", "observedGeneration": int64(4)}}
	if got := completed(convert(t, now, older)); got != two {
		t.Errorf("completed: %v", got)
	}
}
