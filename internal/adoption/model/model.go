// Package model has what the stages of adoption share: names, labels, reasons, and the identities of templates, bindings and
// objects.
package model

// Passage is the name of the passage.
const Passage = "adoption"

// MaxConcurrent is how many bindings, and how many Works, are reconciled concurrently.
const MaxConcurrent = 8
