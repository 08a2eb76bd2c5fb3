// Package fairlead holds the names that every passage shares.
package fairlead

// AnnotationPaused set to "true" on the resource that starts a passage pauses that passage.
const AnnotationPaused = "fairlead.dev/paused"

// AnnotationRetry on the resource that starts a passage is a time: what failed before it is tried again.
const AnnotationRetry = "fairlead.dev/retry"
