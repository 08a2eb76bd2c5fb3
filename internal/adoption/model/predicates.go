package model

import (
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// SpecChanged leaves out what we write ourselves.
var SpecChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
