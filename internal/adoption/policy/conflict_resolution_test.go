package policy

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// The table of the design, and a value that means nothing.
func TestResolve(t *testing.T) {
	const abort, overwrite = policyv1alpha1.ConflictAbort, policyv1alpha1.ConflictOverwrite
	for _, c := range []struct {
		policy     policyv1alpha1.ConflictResolution
		annotation string
		want       policyv1alpha1.ConflictResolution
		wrong      bool
	}{
		{"", "", abort, false}, {"", "abort", abort, false}, {"", "overwrite", overwrite, false},
		{abort, "", abort, false}, {abort, "abort", abort, false}, {abort, "overwrite", overwrite, false},
		{overwrite, "", overwrite, false}, {overwrite, "abort", abort, false}, {overwrite, "overwrite", overwrite, false},
		{"", "Overwrite", abort, true}, {abort, "yes", abort, true}, {overwrite, "yes", overwrite, true},
	} {
		got, err := ResolveConflict(c.policy, c.annotation)
		if got != c.want || (err != nil) != c.wrong {
			t.Errorf("policy %q, annotation %q: got %q, %v", c.policy, c.annotation, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), `"`+c.annotation+`": write "abort" or "overwrite"`) {
			t.Errorf("it says %v", err)
		}
	}
}
