// Package model has what the stages of adoption share: names, labels, reasons, and the identities of templates, bindings and
// objects.
package model

import "sigs.k8s.io/controller-runtime/pkg/predicate"

// Passage is the name of the passage.
const Passage = "adoption"

// MaxConcurrent is how many bindings, and how many Works, are reconciled concurrently.
const MaxConcurrent = 8

// MaxClusters is how many clusters are checked concurrently. Each takes a worker for as long as it does not
// answer, so there are as many as a hub has clusters.
const MaxClusters = 256

// SpecChanged leaves out updates of the status.
var SpecChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
