package hash

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// jsonNames are those of the fields of a struct and of the ones inline in it.
func jsonNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, jsonNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestEveryField has a row for each field of the spec: whether a change rolls out, and two changes to try, from none to
// the first and from the first to the second.
func TestEveryField(t *testing.T) {
	const rolls, doesNot = true, false
	type row struct {
		rolls         bool
		first, second string
	}
	const (
		small       = "{limits: {memory: 1Gi}}"
		large       = "{limits: {memory: 2Gi}}"
		certificate = "{dnsNames: [a.example]}"
		another     = "{dnsNames: [a.example], duration: 24h}"
		uuid1       = "aaaaaaaa-0000-0000-0000-000000000001"
		uuid2       = "aaaaaaaa-0000-0000-0000-000000000002"
	)
	rows := map[string]row{
		"authenticatorKind":                           {rolls, "Password", "Oidc"},
		"backendSecretName":                           {rolls, "backend", "other"},
		"balancerdExternalCertificateSpec":            {doesNot, certificate, another},
		"balancerdReplicas":                           {doesNot, "3", "0"},
		"balancerdResourceRequirements":               {doesNot, small, large},
		"consoleExternalCertificateSpec":              {doesNot, certificate, another},
		"consoleReplicas":                             {doesNot, "3", "0"},
		"consoleResourceRequirements":                 {doesNot, small, large},
		"enableRbac":                                  {rolls, "true", "false"},
		"environmentId":                               {rolls, uuid1, uuid2},
		"environmentdConnectionRoleArn":               {rolls, "arn:1", "arn:2"},
		"environmentdExtraArgs":                       {rolls, "[--a]", "[--b]"},
		"environmentdExtraEnv":                        {rolls, "[{name: A, value: one}]", "[{name: A, value: two}]"},
		"environmentdImageRef":                        {rolls, "environmentd:1", "environmentd:2"},
		"environmentdResourceRequirements":            {rolls, small, large},
		"environmentdScratchVolumeStorageRequirement": {rolls, "1Gi", "2Gi"},
		"forcePromote":                                {doesNot, "hash", "other"},
		"forceRollout":                                {rolls, uuid1, uuid2},
		"internalCertificateSpec":                     {rolls, certificate, another},
		"podAnnotations":                              {rolls, "{a: one}", "{a: two}"},
		"podLabels":                                   {rolls, "{a: one}", "{a: two}"},
		"rolloutRequestTimeout":                       {rolls, "1h", "2h"},
		"rolloutStrategy":                             {rolls, "ManuallyPromote", "ImmediatelyPromoteCausingDowntime"},
		"serviceAccountAnnotations":                   {rolls, "{a: one}", "{a: two}"},
		"serviceAccountLabels":                        {rolls, "{a: one}", "{a: two}"},
		"serviceAccountName":                          {rolls, "one", "two"},
		"systemParameterConfigmapName":                {rolls, "one", "two"},
	}

	fields := jsonNames(reflect.TypeFor[v1alpha2.MaterializeSpec]())
	for _, field := range fields {
		row, found := rows[field]
		if !found {
			t.Errorf("spec.%s is in the API, and nobody has decided whether it rolls: add it to this table", field)
			continue
		}
		t.Run(field, func(t *testing.T) {
			if CausesRollout(field) != row.rolls {
				t.Errorf("Rolls is %v", CausesRollout(field))
			}
			none := parse(t, "{}")
			one, two := parse(t, field+": "+row.first), parse(t, field+": "+row.second)
			for _, pair := range [][2]*v1alpha2.Materialize{{none, one}, {one, two}, {two, one}, {one, none}} {
				if differ := hashOf(t, pair[0]) != hashOf(t, pair[1]); differ != row.rolls {
					t.Errorf("hashes differ: %v, of\n%s\n%s", differ, canonical(pair[0]), canonical(pair[1]))
				}
				in, out := Changes(pair[0], pair[1])
				if row.rolls && (len(in) != 1 || out != nil) || !row.rolls && (in != nil || len(out) != 1) {
					t.Errorf("changes that roll: %v; that do not: %v", in, out)
				}
				for _, change := range append(in, out...) {
					if !strings.HasPrefix(change.Field, field) {
						t.Errorf("%s is told as a change of %s", field, change.Field)
					}
				}
			}
		})
	}
	for field := range rows {
		if !slices.Contains(fields, field) {
			t.Errorf("spec.%s is in this table, and not in the API", field)
		}
	}
}

func TestExcludedAreThoseOfTheDesign(t *testing.T) {
	want := []string{
		"balancerdExternalCertificateSpec", "balancerdReplicas", "balancerdResourceRequirements",
		"consoleExternalCertificateSpec", "consoleReplicas", "consoleResourceRequirements", "forcePromote",
	}
	if diff := cmp.Diff(want, excluded); diff != "" {
		t.Error(diff)
	}
}

// TestDefaultsAreFields catches a path that leads nowhere, and so would have no effect.
func TestDefaultsAreFields(t *testing.T) {
	for path, value := range defaults {
		at := reflect.TypeFor[v1alpha2.MaterializeSpec]()
		for name := range strings.SplitSeq(path, ".") {
			name, item := strings.CutSuffix(name, "[]")
			if at = fieldType(at, name); at == nil {
				t.Errorf("%s: there is no %s", path, name)
				break
			}
			if item {
				at = at.Elem()
			}
		}
		if at != nil && at != reflect.TypeOf(value) {
			t.Errorf("%s is of type %s, and its default of %T", path, at, value)
		}
	}
}

func fieldType(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			if inner := fieldType(f.Type, name); inner != nil {
				return inner
			}
		}
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			if f.Type.Kind() == reflect.Pointer {
				return f.Type.Elem()
			}
			return f.Type
		}
	}
	return nil
}
