package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	report "github.com/fairlead/fairlead/internal/cli/versions"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestVersions asks for versions while an operator leads, when a CRD is of a newer one, and when the operator has ended.
func TestVersions(t *testing.T) {
	c := cluster.Shared(t)
	admin := administrator(t, c.Config())
	electsMeshLeader(t, admin)
	// shown is the operator of this test: others share the cluster.
	shown := func() (report.Operator, report.Report, int) {
		t.Helper()
		got := fairlead(t, "version", "-o", "json", "--kubeconfig", c.Kubeconfig(), "--request-timeout", wait.Deadline().String())
		var decoded report.Report
		if err := json.Unmarshal([]byte(got.stdout), &decoded); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		i := slices.IndexFunc(decoded.Operators, func(o report.Operator) bool { return slices.Contains(o.Passages, "meshservice") })
		if i < 0 {
			return report.Operator{}, decoded, got.code
		}
		return decoded.Operators[i], decoded, got.code
	}

	p := startOperator(t, c.Kubeconfig(), append(otherPassage, harness.LongLease(), "--leader-election-namespace", c.Namespace(t))...)
	p.ready(t)
	p.leading(t)
	operator, all, code := shown()
	if operator.Version != all.Client.Version || operator.Leader == "" || operator.Unknown != "" || code != 0 || len(all.Problems) > 0 {
		t.Errorf("exit code %d, operator %+v, problems %q", code, operator, all.Problems)
	}

	const name = "zoneingresses.kuma.io"
	crd := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	before := crd.Annotations[crds.SchemaVersionAnnotation]
	mark := func(version string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, crds.SchemaVersionAnnotation, version)
		if err := admin.Patch(context.Background(), crd, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	mark("999")
	t.Cleanup(func() { mark(before) })
	_, all, code = shown()
	if want := fmt.Sprintf("the schema of 1 CRD of the cluster is newer than that of fairlead %s: %s.", all.Client.Version, name); code != 1 ||
		!slices.ContainsFunc(all.Problems, func(problem string) bool { return strings.HasPrefix(problem, want) }) {
		t.Errorf("exit code %d, problems %q", code, all.Problems)
	}
	mark(before)

	if code := p.stop(t); code != 0 {
		t.Fatalf("the operator ended with %d", code)
	}
	if operator, all, _ := shown(); operator.Version != "" {
		t.Errorf("after its end, %+v is among %+v", operator, all.Operators)
	}
}
