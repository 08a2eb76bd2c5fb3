package component

import "fmt"

// Annotations of a pod that tell how it lives; pod-stages.yaml follows them.
const (
	annotationPrefix = "localkube.fairlead.dev/"

	ReadyAfter     = annotationPrefix + "ready-after"
	CrashAfter     = annotationPrefix + "crash-after"
	TerminateAfter = annotationPrefix + "terminate-after"
)

// Check is a rule in CEL over the map `variables.annotations` of a pod.
type Check struct{ Expression, Message string }

const durationPattern = `^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`

// AnnotationChecks refuse what the stages could not follow.
func AnnotationChecks() []Check {
	value := func(annotation, pattern, wanted string) Check {
		return Check{
			Expression: fmt.Sprintf("!('%[1]s' in variables.annotations) || variables.annotations['%[1]s'].matches('%[2]s')", annotation, pattern),
			Message:    fmt.Sprintf("annotation %s must be %s", annotation, wanted),
		}
	}
	const duration = "held, or a duration, like 10s or 1m30s"
	return []Check{
		value(ReadyAfter, durationPattern+"|^held$|^never$", "never, "+duration),
		value(CrashAfter, durationPattern+"|^held$", duration),
		value(TerminateAfter, durationPattern+"|^held$", duration),
		{
			Expression: fmt.Sprintf("variables.annotations.all(name, !name.startsWith('%s') || name in ['%s', '%s', '%s'])",
				annotationPrefix, ReadyAfter, CrashAfter, TerminateAfter),
			Message: fmt.Sprintf("annotations under %s are ready-after, crash-after and terminate-after", annotationPrefix),
		},
	}
}
