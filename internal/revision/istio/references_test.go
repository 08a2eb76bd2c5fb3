package istio

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

func TestResolvedRefs(t *testing.T) {
	shop := usage.NameUsage{Name: "prod", Usage: usage.Usage{Namespaces: 1, Names: []string{"Namespace shop"}}}
	many := []usage.NameUsage{shop}
	for i := range 4 {
		many = append(many, usage.NameUsage{Name: fmt.Sprintf("r%d", i), Usage: usage.Usage{Workloads: 1, Names: []string{"Job shop/load"}}})
	}
	for name, c := range map[string]struct {
		unresolved []usage.NameUsage
		want       string
	}{
		"none": {},
		"one": {
			[]usage.NameUsage{shop},
			"False RefNotFound: labels name revisions or tags that do not exist, and pods created with them get no sidecar: " +
				"prod (1 namespace: Namespace shop); create an IstioRevisionTag of that name, or change the labels",
		},
		"more than are named": {
			many,
			"False RefNotFound: labels name revisions or tags that do not exist, and pods created with them get no sidecar: " +
				"prod (1 namespace: Namespace shop); r0 (1 workload: Job shop/load); r1 (1 workload: Job shop/load); and 2 more; " +
				"create an IstioRevisionTag of that name, or change the labels",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// One that was there before is replaced or removed, and the others stay.
			conditions := []metav1.Condition{{Type: "ResolvedRefs", Message: "before"}, {Type: "Ready"}}
			setResolvedRefs(&conditions, c.unresolved, func(condition metav1.Condition) { conditions[0] = condition })
			got := ""
			if len(conditions) == 2 {
				got = fmt.Sprintf("%s %s: %s", conditions[0].Status, conditions[0].Reason, conditions[0].Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInjectorNames(t *testing.T) {
	webhook := func(labels map[string]string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	got := injectorNames([]metav1.PartialObjectMetadata{
		webhook(map[string]string{v1.LabelRevision: "default"}),
		webhook(map[string]string{v1.LabelRevision: "gone", v1.LabelTag: "prod"}),
	})
	if diff := cmp.Diff(map[string]bool{"default": true, "prod": true}, got); diff != "" {
		t.Error(diff)
	}
}
