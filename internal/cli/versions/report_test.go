package versions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/version"
)

func TestCompare(t *testing.T) {
	running := func(version string) []Operator {
		return []Operator{{Passages: []string{"adoption", "revision"}, Version: version, Leader: "pod-1"}}
	}
	schemas := func(states ...crds.SchemaState) CRDs {
		var c CRDs
		for i, state := range states {
			c.Schemas = append(c.Schemas, crds.Schema{Name: string(rune('a'+i)) + ".harbour.test", State: state})
		}
		return c
	}
	cases := map[string]struct {
		client    string
		operators []Operator
		crds      CRDs
		fits      *bool
		problems  []string
		printed   string
	}{
		"all the same": {
			"v0.1.0", running("v0.1.0"), schemas(crds.SchemaSame, crds.SchemaSame), ptr.To(true), nil,
			"operator v0.1.0 (leads adoption, revision as pod-1)\nCRDs 2 as this fairlead has them\n",
		},
		"a patch apart": {
			"v0.1.3", running("v0.1.0"), schemas(crds.SchemaSame), ptr.To(true), nil, "",
		},
		"passages that do not run": {
			"v0.1.0", running("v0.1.0"), schemas(crds.SchemaSame, crds.SchemaNotInstalled, crds.SchemaNotOwned), ptr.To(true), nil,
			"CRDs 1 as this fairlead has them, 1 not installed by Fairlead, 1 not installed\n",
		},
		"a minor version apart": {
			"v0.2.0", running("v0.1.0"), schemas(crds.SchemaSame), ptr.To(false),
			[]string{"fairlead v0.2.0 and the operator v0.1.0, which leads adoption, revision, do not fit"}, "\nfairlead v0.2.0 and the operator v0.1.0, ",
		},
		"a build between releases": {
			"v0.1.0-3-g59cf596", running("v0.1.0"), schemas(crds.SchemaSame), ptr.To(false), []string{"Use fairlead v0.1.0, or install the chart of v0.1.0-3-g59cf596."}, "",
		},
		"the same build between releases": {
			"59cf596", running("59cf596"), schemas(crds.SchemaSame), ptr.To(true), nil, "",
		},
		"CRDs of an older one": {
			"v0.1.0", running("v0.1.0"), schemas(crds.SchemaOlder, crds.SchemaSame), ptr.To(false),
			[]string{"the schema of 1 CRD of the cluster is older than that of fairlead v0.1.0: a.harbour.test."}, "CRDs 1 as this fairlead has them, 1 older\n",
		},
		"CRDs of a newer one": {
			"v0.1.0", running("v0.1.0"), schemas(crds.SchemaNewer, crds.SchemaNewer), ptr.To(false),
			[]string{"the schemas of 2 CRDs of the cluster are newer than that of fairlead v0.1.0: a.harbour.test, b.harbour.test."}, "",
		},
		"nothing can be read": {
			"v0.1.0", []Operator{{Unknown: "why"}}, CRDs{Unknown: "why not"}, nil, nil, "operator unknown: why\nCRDs unknown: why not\n",
		},
		"what can be read does not fit": {
			"v0.1.0", running("v0.3.0"), CRDs{Unknown: "why not"}, ptr.To(false), []string{"fairlead v0.1.0 and the operator v0.3.0"}, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Compare(version.Info{Version: c.client}, c.operators, c.crds)
			if diff := cmp.Diff(c.fits, got.Fits); diff != "" {
				t.Error(diff)
			}
			if len(got.Problems) != len(c.problems) {
				t.Fatalf("%q", got.Problems)
			}
			for i, problem := range c.problems {
				if !strings.Contains(got.Problems[i], problem) {
					t.Errorf("%q does not say %q", got.Problems[i], problem)
				}
			}
			var printed strings.Builder
			got.Print(&printed)
			if !strings.Contains(printed.String(), c.printed) {
				t.Errorf("%q does not say %q", printed.String(), c.printed)
			}
		})
	}
}

func TestOperatorsOf(t *testing.T) {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	held := func(version, leader string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "fairlead-x", Labels: map[string]string{lease.VersionLabel: version}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To(leader), LeaseDurationSeconds: ptr.To[int32](12), RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-renewed))),
			},
		}
	}
	cases := map[string]struct {
		leases map[string]*coordinationv1.Lease
		want   []Operator
	}{
		"one of all passages": {
			map[string]*coordinationv1.Lease{"rollout": held("v0.1.0", "pod-1", time.Second), "adoption": held("v0.1.0", "pod-1", time.Second)},
			[]Operator{{Passages: []string{"adoption", "rollout"}, Version: "v0.1.0", Leader: "pod-1"}},
		},
		"two side by side, and a free lease": {
			map[string]*coordinationv1.Lease{"rollout": held("v0.1.0", "pod-1", time.Second), "adoption": held("v0.2.0", "pod-2", -time.Minute), "revision": held("v0.1.0", "", time.Second)},
			[]Operator{{Passages: []string{"adoption"}, Version: "v0.2.0", Leader: "pod-2"}, {Passages: []string{"rollout"}, Version: "v0.1.0", Leader: "pod-1"}},
		},
		"one that is gone": {
			map[string]*coordinationv1.Lease{"rollout": held("v0.1.0", "pod-1", time.Hour)},
			[]Operator{{Passages: []string{"rollout"}, Leader: "pod-1", Unknown: "pod-1 renewed the Lease kube-system/fairlead-x 1h0m0s ago: the operator does not run, or cannot reach the API server"}},
		},
		"one that has no version": {
			map[string]*coordinationv1.Lease{"rollout": held("", "pod-1", time.Second)},
			[]Operator{{Passages: []string{"rollout"}, Leader: "pod-1", Unknown: "pod-1 does not record its version in the Lease kube-system/fairlead-x: it is a build without one"}},
		},
		"none": {nil, []Operator{{Absent: true, Unknown: "no operator leads a passage: none runs, or none takes part in leader election"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, operatorsOf(c.leases, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
