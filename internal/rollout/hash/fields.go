package hash

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// CausesRollout tells whether a change of a field of the spec, by its JSON name, causes a rollout.
func CausesRollout(field string) bool { return !slices.Contains(excluded, field) }

// excluded are the fields that are applied on every reconcile without a rollout, and the one that only promotes.
var excluded = []string{
	"balancerdExternalCertificateSpec",
	"balancerdReplicas",
	"balancerdResourceRequirements",
	"consoleExternalCertificateSpec",
	"consoleReplicas",
	"consoleResourceRequirements",
	"forcePromote",
}

// defaults are the values that mean the same as none. They are written out rather than taken from the API, because they
// belong to the algorithm: with another one here, existing hashes would change.
var defaults = map[string]any{
	"authenticatorKind":     v1alpha2.AuthenticatorKind("None"),
	"balancerdReplicas":     int32(2),
	"consoleReplicas":       int32(2),
	"rolloutRequestTimeout": v1alpha2.Duration("24h"),
	"rolloutStrategy":       v1alpha2.RolloutStrategy("WaitUntilReady"),

	"environmentdExtraEnv[].valueFrom.configMapKeyRef.optional": false,
	"environmentdExtraEnv[].valueFrom.fieldRef.apiVersion":      "v1",
	"environmentdExtraEnv[].valueFrom.fileKeyRef.optional":      false,
	"environmentdExtraEnv[].valueFrom.resourceFieldRef.divisor": resource.MustParse("1"),
	"environmentdExtraEnv[].valueFrom.secretKeyRef.optional":    false,
}

func specOf(m *v1alpha2.Materialize) node { return spec(reflect.ValueOf(&m.Spec).Elem()) }

var spec = readerOf(reflect.TypeFor[v1alpha2.MaterializeSpec](), "")
