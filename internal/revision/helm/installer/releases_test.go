package installer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// The namespaces that a record replaces are trusted only if its own namespace is.
func TestWithReplaced(t *testing.T) {
	record := func(namespace, replaces string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Labels: map[string]string{v1.LabelReplacesPrefix + replaces: ""},
		}}
	}
	records := []metav1.PartialObjectMetadata{
		record("second", "first"), record("tenant", "accomplice"), record("third", "second"),
	}
	got := withReplaced(sets.New("third"), records)
	if diff := cmp.Diff([]string{"first", "second", "third"}, sets.List(got)); diff != "" {
		t.Errorf("trusted namespaces: (-want +got)\n%s", diff)
	}
}
