package installer

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// Paused tells whether a resource is paused.
func Paused(object metav1.Object) bool {
	return object.GetAnnotations()[fairlead.AnnotationPaused] == "true"
}

// WhilePaused is the hold of a resource that is paused, and says how to go on.
func WhilePaused(kind string, object metav1.Object) *passage.Reason {
	if !Paused(object) {
		return nil
	}
	return passage.Hold(v1.ReasonPaused, "paused by annotation %s; resume with `fairlead resume %s %s`",
		fairlead.AnnotationPaused, strings.ToLower(kind), object.GetName())
}
