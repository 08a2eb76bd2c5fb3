// Package fairlead holds the names that every passage shares.
package fairlead

// AnnotationPaused set to "true" on the resource that starts a passage pauses that passage.
const AnnotationPaused = "fairlead.dev/paused"

// AnnotationRetry on the resource that starts a passage asks to try again what has failed: for an Istio what failed before the
// time that it is, for a Mesh all that had failed when the value changed.
const AnnotationRetry = "fairlead.dev/retry"

// ConditionHeld is True on the resource that starts a passage while the passage holds, and nothing is done for the resource.
const ConditionHeld = "fairlead.dev/Held"

// ReasonForeignController is why a passage holds: a controller of another system acts on its kinds, or may do so again.
const ReasonForeignController = "ForeignController"
