package installer

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What is ours is told by the trace that our apply left; whoever changes it takes it away from us.
func TestTrace(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	object := func(entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "uid", ManagedFields: entries}}
	}
	ours := entry(v1.FieldOwner, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:replicas":{},"f:paused":{}}}`)
	less := entry(v1.FieldOwner, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:paused":{}}}`)
	theirs := entry("kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`)
	status := entry("kube-controller-manager", metav1.ManagedFieldsOperationUpdate, `{"f:status":{}}`)
	label := entry("somebody", metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:labels":{"f:x":{}}}}`)

	before := appliedStateOf(object(ours))
	cases := map[string]struct {
		after   *metav1.PartialObjectMetadata
		touched bool
	}{
		"nothing":                    {object(ours), false},
		"its status":                 {object(ours, status), false},
		"a label of somebody else's": {object(ours, label), false},
		"a field of ours":            {object(less, theirs), true},
		"all that is ours":           {object(theirs), true},
		"it is gone":                 {nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if touched := appliedStateOf(c.after) != before; touched != c.touched {
				t.Errorf("touched: %t", touched)
			}
		})
	}
	t.Run("it was made anew", func(t *testing.T) {
		again := object(ours)
		again.UID = "another"
		if appliedStateOf(again) == before {
			t.Error("not noticed")
		}
	})
}
