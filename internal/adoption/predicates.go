package adoption

import "sigs.k8s.io/controller-runtime/pkg/predicate"

// specChanged leaves out what we write ourselves.
var specChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
