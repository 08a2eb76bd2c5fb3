package conversion

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	one = "aaaaaaaa-0000-0000-0000-000000000001"
	two = "aaaaaaaa-0000-0000-0000-000000000002"
	nul = "00000000-0000-0000-0000-000000000000"
)

func TestUpgrade(t *testing.T) {
	const least = "environmentdImageRef: e:1, backendSecretName: b"
	const promotingNow = "conditions: [{type: Other, reason: Applied}, {type: UpToDate, status: Unknown, reason: Promoting}]"
	const awaitsRequest = "conditions: [{type: UpToDate, status: 'False', reason: WaitingForApproval, observedGeneration: 5}]"
	applied := func(observed int) string {
		return fmt.Sprintf("conditions: [{type: UpToDate, status: 'True', reason: Applied, observedGeneration: %d}]", observed)
	}
	const applyingNow = "conditions: [{type: UpToDate, status: Unknown, reason: Applying}]"

	cases := map[string]struct{ from, want string }{
		"the request is removed":                      {"spec: {requestRollout: " + one + ", podLabels: {a: b}}", "spec: {podLabels: {a: b}}"},
		"inPlaceRollout is removed, and does nothing": {"spec: {inPlaceRollout: true, rolloutStrategy: WaitUntilReady}", "spec: {rolloutStrategy: WaitUntilReady}"},
		"an empty forcePromote is none":               {`spec: {forcePromote: ""}`, "spec: {}"},
		"the nil UUID as forcePromote is none":        {"spec: {forcePromote: " + nul + "}", "spec: {}"},
		"another forcePromote stays":                  {"spec: {forcePromote: " + one + "}", "spec: {forcePromote: " + one + "}"},
		"a hash as forcePromote stays":                {"spec: {forcePromote: abc}", "spec: {forcePromote: abc}"},
		"the role becomes an annotation":              {"spec: {environmentdIamRoleArn: arn}", "spec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn}}"},
		"the role joins other annotations": {
			"spec: {environmentdIamRoleArn: arn, serviceAccountAnnotations: {a: b}}",
			"spec: {serviceAccountAnnotations: {a: b, eks.amazonaws.com/role-arn: arn}}",
		},
		"an annotation wins over the role": {
			"spec: {environmentdIamRoleArn: arn, serviceAccountAnnotations: {eks.amazonaws.com/role-arn: other}}",
			"spec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: other}}",
		},
		"an empty role is none":             {`spec: {environmentdIamRoleArn: ""}`, "spec: {}"},
		"no role is none":                   {"spec: {environmentdIamRoleArn: null}", "spec: {}"},
		"a role and annotations of nothing": {"spec: {environmentdIamRoleArn: arn, serviceAccountAnnotations: null}", "spec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn}}"},
		"no default is filled in":           {"spec: {" + least + "}", "spec: {" + least + "}"},

		"at rest: both hashes": {
			"spec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", resourcesHash: x, activeGeneration: 3, resourceId: abcdefghij}",
			"spec: {" + least + "}\nstatus: {activeGeneration: 3, resourceId: abcdefghij, requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"at rest, in another case": {
			"spec: {" + least + ", requestRollout: " + strings.ToUpper(one) + "}\nstatus: {lastCompletedRolloutRequest: " + one + "}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"at rest, never asked for": {
			"spec: {" + least + ", requestRollout: " + nul + "}\nstatus: {lastCompletedRolloutRequest: " + nul + ", activeGeneration: 1}",
			"spec: {" + least + "}\nstatus: {activeGeneration: 1, requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"at rest, and nobody wrote the nil UUID": {
			"spec: {" + least + "}\nstatus: {lastCompletedRolloutRequest: " + nul + ", activeGeneration: 1}",
			"spec: {" + least + "}\nstatus: {activeGeneration: 1, requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"under way: nothing was ever rolled out": {
			"spec: {" + least + ", requestRollout: " + nul + "}\nstatus: {lastCompletedRolloutRequest: " + nul + ", activeGeneration: 0}",
			"spec: {" + least + "}\nstatus: {activeGeneration: 0, requestedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"under way: nothing was ever asked for or rolled out": {
			"spec: {" + least + "}\nstatus: {lastCompletedRolloutRequest: " + nul + "}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"at rest: the hash is of the spec after conversion": {
			"metadata: {annotations: {materialize.cloud/force-rollout: now}}\n" +
				"spec: {" + least + ", requestRollout: " + one + ", environmentdIamRoleArn: arn, inPlaceRollout: true}\nstatus: {lastCompletedRolloutRequest: " + one + "}",
			"metadata: {annotations: {materialize.cloud/force-rollout: now}}\n" +
				"spec: {" + least + ", serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn}}\n" +
				"status: {requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"under way: only what was requested": {
			"spec: {" + least + ", requestRollout: " + two + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + applyingNow + "}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1, " + applyingNow + "}",
		},
		"under way: both requests absent are not equal": {
			"spec: {" + least + "}\nstatus: {" + applyingNow + "}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1, " + applyingNow + "}",
		},
		"under way: none completed": {
			"spec: {" + least + ", requestRollout: " + one + "}\nstatus: {resourcesHash: x}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"under way: an empty one is none": {
			"spec: {" + least + `, requestRollout: ""}` + "\n" + `status: {lastCompletedRolloutRequest: "", activeGeneration: 1}`,
			"spec: {" + least + "}\nstatus: {activeGeneration: 1, requestedRolloutHash: HASH, rolloutHashVersion: 1}",
		},
		"promoting: neither hash": {
			"spec: {" + least + ", requestRollout: " + two + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + promotingNow + "}",
			"spec: {" + least + "}\nstatus: {rolloutHashVersion: 1, " + promotingNow + "}",
		},
		"promoting the first: neither hash": {
			"spec: {" + least + ", requestRollout: " + two + "}\nstatus: {" + promotingNow + "}",
			"spec: {" + least + "}\nstatus: {rolloutHashVersion: 1, " + promotingNow + "}",
		},

		"at rest: the other operator has seen the spec as it is": {
			"metadata: {generation: 4}\nspec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + applied(4) + "}",
			"metadata: {generation: 4}\nspec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1, " + applied(4) + "}",
		},
		"at rest: restored from a backup, which counts generations anew": {
			"metadata: {generation: 1}\nspec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + applied(4) + "}",
			"metadata: {generation: 1}\nspec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, lastCompletedRolloutHash: HASH, rolloutHashVersion: 1, " + applied(4) + "}",
		},
		"edited since: the other operator has seen the spec as it was before": {
			"metadata: {generation: 5}\nspec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + applied(4) + "}",
			"metadata: {generation: 5}\nspec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1, " + applied(4) + "}",
		},
		"edited since: the other operator waits for a request": {
			"metadata: {generation: 5}\nspec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + awaitsRequest + "}",
			"metadata: {generation: 5}\nspec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1, " + awaitsRequest + "}",
		},
		"edited since: another image was rolled out": {
			"spec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", lastCompletedRolloutEnvironmentdImageRef: e:0}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1, lastCompletedRolloutEnvironmentdImageRef: e:0}",
		},
		"edited since: the rollout was requested, and nobody has begun it": {
			"metadata: {generation: 5}\nspec: {" + least + ", requestRollout: " + two + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", " + applied(4) + "}",
			"metadata: {generation: 5}\nspec: {" + least + "}\nstatus: {requestedRolloutHash: HASH, rolloutHashVersion: 1, " + applied(4) + "}",
		},

		"hashes travel, whatever the spec is by now": {
			"spec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutHash: old, requestedRolloutHash: new, rolloutHashVersion: 1}",
			"spec: {" + least + "}\nstatus: {lastCompletedRolloutHash: old, requestedRolloutHash: new, rolloutHashVersion: 1}",
		},
		"hashes travel, beside what v1alpha1 had": {
			"spec: {" + least + ", requestRollout: " + one + "}\nstatus: {lastCompletedRolloutRequest: " + one + ", requestedRolloutHash: new}",
			"spec: {" + least + "}\nstatus: {requestedRolloutHash: new}",
		},
		"a version without hashes travels": {
			"spec: {" + least + ", requestRollout: " + one + "}\nstatus: {rolloutHashVersion: 1, " + promotingNow + "}",
			"spec: {" + least + "}\nstatus: {rolloutHashVersion: 1, " + promotingNow + "}",
		},
		"hashes of a later version travel": {
			"spec: {" + least + "}\nstatus: {lastCompletedRolloutHash: old, rolloutHashVersion: 9, later: {a: 1}}",
			"spec: {" + least + "}\nstatus: {lastCompletedRolloutHash: old, rolloutHashVersion: 9, later: {a: 1}}",
		},
		"other fields that only v1alpha2 writes are a sign": {
			"spec: {" + least + "}\nstatus: {observedGeneration: 1, resourceId: abcdefghij}",
			"spec: {" + least + "}\nstatus: {observedGeneration: 1, resourceId: abcdefghij}",
		},
		"the mark of a status of v1alpha2 is one too, and goes": {
			"spec: {" + least + "}\nstatus: {rolloutHashVersion: 0, resourceId: abcdefghij}",
			"spec: {" + least + "}\nstatus: {resourceId: abcdefghij}",
		},

		"nothing":                          {"", ""},
		"no spec":                          {"spec: null", "spec: null"},
		"an empty spec":                    {"spec: {}", "spec: {}"},
		"an empty status":                  {"spec: {" + least + "}\nstatus: {}", "spec: {" + least + "}\nstatus: {}"},
		"no status":                        {"spec: {" + least + "}\nstatus: null", "spec: {" + least + "}\nstatus: null"},
		"a part of a spec":                 {"spec: {podLabels: {a: b}}", "spec: {podLabels: {a: b}}"},
		"a part of a spec beside a status": {"spec: {environmentdImageRef: e:1}\nstatus: {lastCompletedRolloutRequest: " + one + ", activeGeneration: 1}", "spec: {environmentdImageRef: e:1}\nstatus: {activeGeneration: 1}"},
		"a status alone":                   {"status: {" + promotingNow + "}", "status: {" + promotingNow + "}"},
		"metadata alone":                   {"metadata: {labels: {a: b}}", "metadata: {labels: {a: b}}"},
		"what nobody knows": {
			"metadata: {name: mz, odd: [1]}\nspec: {odd: {a: [1, 2.5, null]}}\nstatus: {odd: true}\nodd: 9007199254740993",
			"metadata: {name: mz, odd: [1]}\nspec: {odd: {a: [1, 2.5, null]}}\nstatus: {odd: true}\nodd: 9007199254740993",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from := object(t, older, c.from)
			before := runtime.DeepCopyJSON(from)
			got := convert(t, from, newer)
			if diff := cmp.Diff(withHash(t, object(t, newer, c.want)), withoutPreserved(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(asRead(before["spec"]), withoutNulls(convert(t, got, older)["spec"])); diff != "" {
				t.Errorf("read as v1alpha1 it is another spec: %s", diff)
			}
			if diff := cmp.Diff(before, from); diff != "" {
				t.Errorf("the input has changed: %s", diff)
			}
			// Once there, it stays as it is on every further trip.
			if diff := cmp.Diff(got, convert(t, convert(t, got, older), newer)); diff != "" {
				t.Errorf("there and back: %s", diff)
			}
		})
	}
}

func TestDowngrade(t *testing.T) {
	const least = "environmentdImageRef: e:1, backendSecretName: b"
	cases := map[string]struct{ from, want string }{
		"all travels": {
			"metadata: {name: mz}\nspec: {" + least + ", forcePromote: h, forceRollout: " + one + "}\nstatus: {requestedRolloutHash: h, rolloutHashVersion: 1, environmentId: " + two + "}",
			"metadata: {name: mz}\nspec: {" + least + ", forcePromote: h, forceRollout: " + one + "}\nstatus: {requestedRolloutHash: h, rolloutHashVersion: 1, environmentId: " + two + "}",
		},
		"a part":                     {"spec: {podLabels: {a: b}}", "spec: {podLabels: {a: b}}"},
		"the role stays where it is": {"spec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn}}", "spec: {serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn}}"},
		"a part of a status":         {"status: {resourceId: abcdefghij}", "status: {resourceId: abcdefghij}"},
		"an empty status":            {"spec: {" + least + "}\nstatus: {}", "spec: {" + least + "}\nstatus: {}"},
		"a status that could be from v1alpha1 says that it is not": {
			"spec: {" + least + "}\nstatus: {resourceId: abcdefghij}",
			"spec: {" + least + "}\nstatus: {resourceId: abcdefghij, rolloutHashVersion: 0}",
		},
		"what nobody knows": {"spec: {odd: 1}\nodd: [2]", "spec: {odd: 1}\nodd: [2]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from := object(t, newer, c.from)
			before := runtime.DeepCopyJSON(from)
			got := convert(t, from, older)
			if diff := cmp.Diff(object(t, older, c.want), got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(from, convert(t, got, newer)); diff != "" {
				t.Errorf("there and back: %s", diff)
			}
			if diff := cmp.Diff(before, from); diff != "" {
				t.Errorf("the input has changed: %s", diff)
			}
		})
	}
}

// TestWriteInTheOldVersion is a user who applies v1alpha1 over an object of v1alpha2: the hashes are those of the old spec,
// so that the change is seen.
func TestWriteInTheOldVersion(t *testing.T) {
	stored := object(t, newer, "spec: {environmentdImageRef: e:1, backendSecretName: b}\n"+
		"status: {requestedRolloutHash: h, lastCompletedRolloutHash: h, rolloutHashVersion: 1, rolloutRequestedAt: 2026-01-01T00:00:00Z}")
	edited := runtime.DeepCopyJSON(convert(t, stored, older))
	edited["spec"].(map[string]any)["environmentdImageRef"] = "e:2"
	edited["spec"].(map[string]any)["requestRollout"] = one

	got := convert(t, edited, newer)
	if diff := cmp.Diff(map[string]any{"environmentdImageRef": "e:2", "backendSecretName": "b"}, got["spec"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(stored["status"], got["status"]); diff != "" {
		t.Error(diff)
	}
}

func TestSameVersion(t *testing.T) {
	for _, version := range []string{older, newer} {
		o := object(t, version, "spec: {requestRollout: "+one+", forcePromote: ''}\nstatus: {resourcesHash: x}")
		if diff := cmp.Diff(o, convert(t, o, version)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	named := "metadata: {namespace: shop, name: mz}\n"
	whole := "spec: {environmentdImageRef: e:1, backendSecretName: b, environmentdScratchVolumeStorageRequirement: plenty}\n"
	cases := map[string]struct {
		object map[string]any
		to     string
		want   []string
	}{
		"another group":   {object(t, "example.com/v1alpha1", named), newer, []string{"Materialize shop/mz", "example.com/v1alpha1"}},
		"another version": {object(t, "materialize.cloud/v1", named), newer, []string{"Materialize shop/mz", "materialize.cloud/v1"}},
		"another kind": {
			map[string]any{"apiVersion": older, "kind": "Balancer", "metadata": map[string]any{"name": "b"}}, newer,
			[]string{"Balancer b", "only Materialize in"},
		},
		"no kind at all":       {map[string]any{}, newer, []string{"object without a name"}},
		"to another version":   {object(t, older, named), "materialize.cloud/v1", []string{"Materialize shop/mz", "there is no materialize.cloud/v1"}},
		"to the same, another": {object(t, "materialize.cloud/v1", named), "materialize.cloud/v1", []string{"Materialize shop/mz"}},
		"a spec that is text":  {object(t, older, named+"spec: x"), newer, []string{"shop/mz", "spec is text: make it an object"}},
		"a status that is one": {object(t, newer, named+"status: [1]"), older, []string{"shop/mz", "status is a list"}},
		"a role of numbers":    {object(t, older, named+"spec: {environmentdIamRoleArn: 7}"), newer, []string{"shop/mz", "spec.environmentdIamRoleArn is a number"}},
		"annotations of none": {
			object(t, older, named+"spec: {environmentdIamRoleArn: arn, serviceAccountAnnotations: true}"), newer,
			[]string{"shop/mz", "in spec: serviceAccountAnnotations is a boolean"},
		},
		"a spec without a hash": {object(t, older, named+whole+"status: {resourcesHash: x}"), newer, []string{"shop/mz", "hash the spec"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Convert(c.object, c.to)
			if err == nil {
				t.Fatalf("converted to %v", got)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}
