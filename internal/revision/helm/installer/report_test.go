package installer

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestNewTrouble(t *testing.T) {
	status := func(value metav1.ConditionStatus, reason v1.Reason, message string) []metav1.Condition {
		return []metav1.Condition{{
			Type: string(v1.ConditionReconciled), Status: value, Reason: string(reason), Message: message,
		}}
	}
	missing := status("False", v1.ReasonVersionNotFound, "spec.version is empty")
	cases := map[string]struct {
		before, after []metav1.Condition
		reported      bool
	}{
		"first seen":                 {nil, missing, true},
		"said before":                {missing, missing, false},
		"another cause":              {missing, status("False", v1.ReasonVersionNotFound, "spec.version v1.24-latest"), true},
		"another reason":             {missing, status("False", v1.ReasonRefused, "spec.version is empty"), true},
		"it was well until now":      {status("True", v1.ReasonReconciled, ""), missing, true},
		"it is well now":             {missing, status("True", v1.ReasonReconciled, ""), false},
		"somebody asked for a pause": {missing, status("False", v1.ReasonPaused, "paused"), false},
		"nothing was ever said":      {nil, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := newFailure(c.before, c.after); (got != nil) != c.reported {
				t.Errorf("got %+v, want it told: %t", got, c.reported)
			}
		})
	}
}
