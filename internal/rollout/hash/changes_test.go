package hash

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	type change struct{ field, from, to string }
	type changes []change
	cases := map[string]struct {
		from, to       string
		rolls, doesNot changes
	}{
		"nothing": {"{}", "{}", nil, nil},
		"replicas from the default": {
			"{}", "balancerdReplicas: 3",
			nil, changes{{"balancerdReplicas", "2", "3"}},
		},
		"both kinds": {
			"{environmentdImageRef: e:1, consoleReplicas: 1}", "{environmentdImageRef: e:2, consoleReplicas: 5}",
			changes{{"environmentdImageRef", "e:1", "e:2"}}, changes{{"consoleReplicas", "1", "5"}},
		},
		"a strategy from the default": {
			"{}", "rolloutStrategy: ManuallyPromote",
			changes{{"rolloutStrategy", "WaitUntilReady", "ManuallyPromote"}}, nil,
		},
		"a timeout to the default": {
			"rolloutRequestTimeout: 1h", "{}",
			changes{{"rolloutRequestTimeout", "1h", "24h"}}, nil,
		},
		"deep in a structure that was not there": {
			"{}", "environmentdResourceRequirements: {limits: {memory: 1024Mi, cpu: 500m}}",
			changes{
				{"environmentdResourceRequirements.limits[cpu]", "", "500m"},
				{"environmentdResourceRequirements.limits[memory]", "", "1Gi"},
			}, nil,
		},
		"a structure that goes": {
			"internalCertificateSpec: {issuerRef: {name: ca}, dnsNames: [a, b]}", "{}",
			changes{
				{"internalCertificateSpec.dnsNames", "[a, b]", ""},
				{"internalCertificateSpec.issuerRef.name", "ca", ""},
			}, nil,
		},
		"an entry without a value": {
			"podLabels: {a: one, b: two}", `podLabels: {a: one, c: ""}`,
			changes{{"podLabels[b]", "two", ""}, {"podLabels[c]", "", `""`}}, nil,
		},
		"an item": {
			"environmentdExtraArgs: [--a, --b]", "environmentdExtraArgs: [--a, --c]",
			changes{{"environmentdExtraArgs[1]", "--b", "--c"}}, nil,
		},
		"more items": {
			"environmentdExtraArgs: [--a]", `environmentdExtraArgs: [--a, ""]`,
			changes{{"environmentdExtraArgs", "[--a]", `[--a, ""]`}}, nil,
		},
		"in an item": {
			"environmentdExtraEnv: [{name: A, value: one}]", "environmentdExtraEnv: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
			changes{
				{"environmentdExtraEnv[0].value", "one", ""},
				{"environmentdExtraEnv[0].valueFrom.secretKeyRef.key", "", "k"},
				{"environmentdExtraEnv[0].valueFrom.secretKeyRef.name", "", "s"},
			}, nil,
		},
		"items with structure": {
			"{}", "environmentdExtraEnv: [{name: A, value: one}]",
			changes{{"environmentdExtraEnv", "", "[{name: A, value: one}]"}}, nil,
		},
		"a UUID": {
			"forceRollout: 00000000-0000-0000-0000-000000000000", "forceRollout: ABCDEF00-0000-0000-0000-00000000000F",
			changes{{"forceRollout", "", "ABCDEF00-0000-0000-0000-00000000000F"}}, nil,
		},
		"all that does not roll": {
			"{}", "{forcePromote: h, consoleReplicas: 1, balancerdExternalCertificateSpec: {duration: 1h}}",
			nil, changes{{"balancerdExternalCertificateSpec.duration", "", "1h"}, {"consoleReplicas", "2", "1"}, {"forcePromote", "", "h"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rolls, doesNot := Changes(parse(t, c.from), parse(t, c.to))
			var want []Change
			for _, w := range c.rolls {
				want = append(want, Change{w.field, w.from, w.to, true})
			}
			for _, w := range c.doesNot {
				want = append(want, Change{w.field, w.from, w.to, false})
			}
			if diff := cmp.Diff(want, slices.Concat(rolls, doesNot)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
