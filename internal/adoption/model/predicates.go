package model

import (
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// SpecChanged leaves out updates of the status.
var SpecChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
