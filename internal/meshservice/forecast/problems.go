package forecast

import (
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/snapshot"
)

// problemsOf are what cannot be sent to proxies as it is written, and what refers to nothing, with whether that is so already.
func problemsOf(today, then []snapshot.Problem) []Finding {
	found := []Finding{}
	for _, p := range then {
		found = append(found, Finding{Object: p.Object, Field: p.Field, Why: p.Message, New: !slices.Contains(today, p)})
	}
	return found
}
