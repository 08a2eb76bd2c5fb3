package foreign

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestFailures: of many objects the first three are named, and after three that nothing serves no other is tried.
func TestFailures(t *testing.T) {
	refused, unserved := errors.New("refused"), apierrors.NewInternalError(errors.New("failed calling webhook"))
	var f failures
	if f.err() != nil || f.isUnavailable() {
		t.Errorf("nothing failed: %v", f.err())
	}
	for i := range 5 {
		f.add(fmt.Errorf("object %d: %w", i, refused))
	}
	if want := "object 0: refused\nobject 1: refused\nobject 2: refused\nand 2 more"; f.err().Error() != want || !errors.Is(f.err(), refused) {
		t.Errorf("got %v", f.err())
	}
	for i := range 3 {
		if f.isUnavailable() {
			t.Errorf("unavailable after %d", i)
		}
		f.add(fmt.Errorf("object: %w", unserved))
	}
	if !f.isUnavailable() {
		t.Error("not unavailable after 3")
	}
}
