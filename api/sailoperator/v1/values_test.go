package v1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestValuesRoundTrip(t *testing.T) {
	cases := map[string]string{
		"left out":              `{}`,
		"empty":                 `{"values":{}}`,
		"declared fields":       `{"values":{"global":{"istioNamespace":"istio-system"},"revision":"canary","revisionTags":[]}}`,
		"unknown fields":        `{"values":{"global":{"proxy":{"privileged":true}},"pilot":{"env":{"PILOT_TRACE_SAMPLING":"100"}}}}`,
		"whole numbers":         `{"values":{"pilot":{"autoscaleMax":5,"id":9007199254740993}}}`,
		"fractions":             `{"values":{"pilot":{"traceSampling":0.5}}}`,
		"null removes a key":    `{"values":{"pilot":{"resources":null}}}`,
		"empty list and object": `{"values":{"pilot":{"nodeSelector":{},"tolerations":[]}}}`,
		"lists of objects":      `{"values":{"pilot":{"tolerations":[{"key":"infra","operator":"Exists"},["nested",1,false]]}}}`,
	}
	codecs := map[string]struct {
		decode func(string) (IstioSpec, error)
		encode func(IstioSpec) ([]byte, error)
	}{
		"json": {
			decode: func(text string) (spec IstioSpec, err error) { return spec, json.Unmarshal([]byte(text), &spec) },
			encode: func(spec IstioSpec) ([]byte, error) { return json.Marshal(spec) },
		},
		"yaml": {
			decode: func(text string) (spec IstioSpec, err error) { return spec, yaml.Unmarshal([]byte(text), &spec) },
			encode: func(spec IstioSpec) ([]byte, error) { return json.Marshal(*spec.DeepCopy()) },
		},
		"unstructured": {
			decode: func(text string) (spec IstioSpec, err error) {
				var plain Values
				if err := json.Unmarshal([]byte(text), &plain); err != nil {
					return spec, err
				}
				return spec, runtime.DefaultUnstructuredConverter.FromUnstructured(plain, &spec)
			},
			encode: func(spec IstioSpec) ([]byte, error) {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
				if err != nil {
					return nil, err
				}
				return json.Marshal(object)
			},
		},
	}
	for codecName, codec := range codecs {
		for name, text := range cases {
			t.Run(codecName+"/"+name, func(t *testing.T) {
				spec, err := codec.decode(text)
				if err != nil {
					t.Fatal(err)
				}
				got, err := codec.encode(spec)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(text, string(got)); diff != "" {
					t.Errorf("after a round trip (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestValuesDeepCopySharesNothing(t *testing.T) {
	original := func() Values {
		return Values{"pilot": map[string]any{"env": map[string]any{"A": "1"}, "args": []any{"x", map[string]any{"n": int64(1)}}}}
	}
	values := original()
	copied := values.DeepCopy()
	pilot := copied["pilot"].(map[string]any)
	pilot["env"].(map[string]any)["A"] = "2"
	pilot["args"].([]any)[1].(map[string]any)["n"] = 2
	copied["new"] = true
	if diff := cmp.Diff(original(), values); diff != "" {
		t.Errorf("changing the copy changed the original (-want +got):\n%s", diff)
	}
	if Values(nil).DeepCopy() != nil {
		t.Error("the copy of no values is not nil")
	}
}
