package workload

import (
	"strings"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// legacyCode is the code of a failure that was written by an operator of schema version 2 of istios.sailoperator.io or
// older, before November 2026: such a failure has a text and no code. The texts are those of that time and never change.
// The first status that this operator writes has codes.
func legacyCode(failure v1.WorkloadMigrationFailure) v1.Reason {
	switch {
	case strings.HasPrefix(failure.Reason, "its label was moved to "):
		return v1.ReasonContested
	case failure.Kind == kindNamespace, strings.HasPrefix(failure.Reason, "the API server refused it: "):
		return v1.ReasonRefused
	}
	return ""
}
