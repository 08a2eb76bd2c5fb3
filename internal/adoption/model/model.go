// Package model has what the stages of adoption share: names, labels, reasons, and the identities of templates, bindings and
// objects.
package model

import "sigs.k8s.io/controller-runtime/pkg/predicate"

// Passage is the name of the passage.
const Passage = "adoption"

// MaxConcurrent is how many bindings, and how many Works, are reconciled concurrently.
const MaxConcurrent = 8

// SpecChanged leaves out updates of the status.
var SpecChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
