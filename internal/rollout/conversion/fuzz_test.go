package conversion

import (
	"encoding/json"
	"maps"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// parts are specs and statuses of both versions, whole and in part.
var parts = [][2]string{
	{`null`, `null`},
	{`{}`, `{}`},
	{`{"environmentdImageRef":"e:1","backendSecretName":"b"}`, `{"resourceId":"abcdefghij"}`},
	{`{"environmentdImageRef":"e:1","backendSecretName":"b","requestRollout":"` + one + `"}`, `{"lastCompletedRolloutRequest":"` + one + `","resourcesHash":"x"}`},
	{`{"environmentdImageRef":"e:1","backendSecretName":"b","environmentdIamRoleArn":"arn"}`, `{"conditions":[{"type":"UpToDate","reason":"Promoting"}]}`},
	{`{"environmentdImageRef":"e:1","backendSecretName":"b","forcePromote":"` + nul + `","inPlaceRollout":true}`, `{"requestedRolloutHash":"h","rolloutHashVersion":1}`},
	{`{"serviceAccountAnnotations":{"eks.amazonaws.com/role-arn":"a"},"environmentdIamRoleArn":"arn"}`, `{"rolloutHashVersion":0,"conditions":[null,7,{"type":{}}]}`},
	{`{"environmentdImageRef":"e:1","backendSecretName":"b","requestRollout":"` + two + `"}`, `{"lastCompletedRolloutRequest":"` + one + `","lastCompletedRolloutHash":"h","conditions":[{"type":"UpToDate","status":"True","observedGeneration":1}]}`},
	{`{"environmentdImageRef":"e:1","backendSecretName":"b","requestRollout":"` + two + `"}`, `{"lastCompletedRolloutRequest":"` + one + `","lastCompletedRolloutHash":"h","conditions":[{"type":"UpToDate","status":"Unknown"}]}`},
	{`{"environmentdImageRef":[],"backendSecretName":{},"balancerdReplicas":1e300}`, `{"lastCompletedRolloutRequest":{},"activeGeneration":-1}`},
}

// annotations are what an object of v1alpha2 may say of v1alpha1.
var annotations = []string{
	``, `{}`, `7`, `{"version":2,"spec":{"requestRollout":"` + one + `"}}`,
	`{"version":1,"spec":{"requestRollout":"` + one + `","inPlaceRollout":false},"role":"a"}`,
	`{"version":1,"spec":{"environmentdIamRoleArn":"other"}}`,
	`{"version":1,"spec":{"requestRollout":"` + two + `"},"completed":{"request":"` + one + `","hash":"h"}}`,
	`{"version":1,"completed":{"request":"` + one + `"}}`,
	`{"version":1,"spec":{"environmentdIamRoleArn":"","forcePromote":"` + nul + `"}}`,
	`{"version":1,"spec":{"requestRollout":7,"inPlaceRollout":"yes","environmentdIamRoleArn":[],"forcePromote":"h"},"role":"other"}`,
}

// FuzzRoundTrip takes any object of v1alpha2 through v1alpha1, and expects it back. What the annotation says and v1alpha2 has
// overruled goes with the first trip.
func FuzzRoundTrip(f *testing.F) {
	for _, part := range parts {
		for _, annotation := range annotations {
			f.Add(part[0], part[1], annotation)
		}
	}
	f.Fuzz(func(t *testing.T, spec, status, annotation string) {
		stored := assemble(t, newer, spec, status)
		if annotation != "" {
			stored["metadata"] = map[string]any{"annotations": map[string]any{v1alpha2.AnnotationV1alpha1: annotation}}
		}
		// The API server has dropped what v1alpha2 does not know, and these say the same as nothing.
		if spec, ok := stored["spec"].(map[string]any); ok {
			for _, name := range []string{"requestRollout", "inPlaceRollout", "environmentdIamRoleArn"} {
				delete(spec, name)
			}
			if spec["forcePromote"] == "" || spec["forcePromote"] == nul {
				delete(spec, "forcePromote")
			}
		}
		if status, ok := stored["status"].(map[string]any); ok {
			delete(status, lastCompletedRolloutRequest)
			delete(status, resourcesHash)
			if status[rolloutHashVersion] == int64(0) || status[rolloutHashVersion] == float64(0) {
				delete(status, rolloutHashVersion)
			}
		}
		before := runtime.DeepCopyJSON(stored)
		through, err := Convert(stored, older)
		if err != nil {
			t.Skip(err)
		}
		back, err := Convert(through, newer)
		if err != nil {
			t.Fatalf("it has come from v1alpha2, and does not go back: %v", err)
		}
		if diff := cmp.Diff(before, stored); diff != "" {
			t.Errorf("the input has changed: %s", diff)
		}
		if again := convert(t, convert(t, back, older), newer); !cmp.Equal(back, again) {
			t.Errorf("there and back again: %s", cmp.Diff(back, again))
		}
		if readPreserved(before["metadata"]) != nil {
			before, back = withoutPreserved(before), withoutPreserved(back)
			for _, object := range []map[string]any{before, back} {
				delete(object, "metadata")
				if spec, _ := object["spec"].(map[string]any); len(spec) == 0 && (object["spec"] == nil || spec != nil) {
					delete(object, "spec")
				}
			}
		}
		if diff := cmp.Diff(before, back); diff != "" {
			t.Errorf("there and back: %s", diff)
		}
	})
}

// FuzzUpgrade takes any object of v1alpha1, and expects that once it is in v1alpha2, no further trip changes it.
func FuzzUpgrade(f *testing.F) {
	for _, part := range parts {
		f.Add(part[0], part[1])
	}
	gone := map[string]bool{
		"requestRollout": true, "inPlaceRollout": true, "environmentdIamRoleArn": true, "forcePromote": true,
		lastCompletedRolloutRequest: true, resourcesHash: true, rolloutHashVersion: true,
	}
	f.Fuzz(func(t *testing.T, spec, status string) {
		from := assemble(t, older, spec, status)
		// The API server stores no null, and no value of another type.
		if spec, ok := from["spec"].(map[string]any); ok {
			spec = withoutNulls(spec).(map[string]any)
			if _, isText := spec[requestRollout].(string); !isText {
				delete(spec, requestRollout)
			}
			if _, isBool := spec[inPlaceRollout].(bool); !isBool {
				delete(spec, inPlaceRollout)
			}
			from["spec"] = spec
		}
		before := runtime.DeepCopyJSON(from)
		first, err := Convert(from, newer)
		if err != nil {
			t.Skip(err)
		}
		if diff := cmp.Diff(before, from); diff != "" {
			t.Errorf("the input has changed: %s", diff)
		}
		for _, part := range []string{"spec", "status"} {
			was, _ := before[part].(map[string]any)
			is, _ := first[part].(map[string]any)
			for name, value := range was {
				if !gone[name] && name != "serviceAccountAnnotations" && !cmp.Equal(value, is[name]) {
					t.Errorf("%s.%s was %v, is %v", part, name, value, is[name])
				}
			}
		}
		through := convert(t, first, older)
		if diff := cmp.Diff(asRead(before["spec"]), through["spec"]); diff != "" {
			t.Errorf("v1alpha1 does not read what it wrote: %s", diff)
		}
		second := runtime.DeepCopyJSON(first)
		for range 2 {
			second = convert(t, convert(t, second, older), newer)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("there and back: %s", diff)
		}
	})
}

// FuzzObject takes any JSON for an object, and expects no panic, and the same from its text as from its values.
func FuzzObject(f *testing.F) {
	for _, part := range parts {
		for _, version := range []string{older, newer} {
			f.Add([]byte(`{"apiVersion":"` + version + `","kind":"Materialize","metadata":{"name":"mz"},"spec":` + part[0] + `,"status":` + part[1] + `}`))
		}
	}
	for _, annotation := range annotations {
		for _, version := range []string{older, newer} {
			f.Add([]byte(`{"apiVersion":"` + version + `","kind":"Materialize","metadata":{"name":"mz","annotations":{"a":"b","fairlead.dev\\/v1alpha1":` +
				strconv.Quote(annotation) + `}},"spec":{"serviceAccountAnnotations":{"eks.amazonaws.com/role-arn":"a"}}}`))
		}
	}
	for _, seed := range []string{`7`, `null`, `{}`, `{"kind":{},"apiVersion":[]}`, `{"metadata":7}`,
		`{"apiVersion":"` + older + `","kind":"Materialize","metadata":null,"odd":null}`, `{"kind":"Materialize","kind":"Pod"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, to := range []string{older, newer, "", "v1"} {
			got, gotErr := convertText(text, to)
			var object map[string]any
			if err := utiljson.Unmarshal(text, &object); err != nil || object == nil {
				if gotErr == nil {
					t.Errorf("%q is no object, and is converted to %v", text, got)
				}
				continue
			}
			want, wantErr := Convert(object, to)
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("from text: %v; from values: %v", gotErr, wantErr)
			}
			if wantErr != nil {
				continue
			}
			want = maps.Clone(want)
			if want["metadata"] == nil {
				want["metadata"] = map[string]any{}
			}
			if diff := cmp.Diff(decode(t, encode(t, want)), decode(t, encode(t, got))); diff != "" {
				t.Errorf("from text and from values: %s", diff)
			}
		}
	})
}

func assemble(t *testing.T, apiVersion, spec, status string) map[string]any {
	object := map[string]any{"apiVersion": apiVersion, "kind": "Materialize"}
	for name, text := range map[string]string{"spec": spec, "status": status} {
		if !json.Valid([]byte(text)) {
			t.Skip("no JSON")
		}
		var value any
		if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
			t.Skip(err)
		}
		object[name] = value
	}
	return object
}
