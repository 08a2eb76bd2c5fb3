// Package fairlead holds the names that every passage shares.
package fairlead

// AnnotationPaused set to "true" on the resource that starts a passage pauses that passage.
const AnnotationPaused = "fairlead.dev/paused"

// AnnotationRetry on the resource that starts a passage asks to try again what has failed: for an Istio what failed before the
// time that it is, for a Mesh all that had failed when the value changed.
const AnnotationRetry = "fairlead.dev/retry"
