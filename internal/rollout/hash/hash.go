// Package hash decides whether a change of a Materialize causes a rollout: its spec, and the annotation that forces a
// rollout, are brought into a canonical form, which is hashed.
package hash

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Version is that of the algorithm that Of uses. A hash is kept with its version, so that another algorithm never makes an
// unchanged spec look changed.
const Version int32 = 1

// algorithms are all that ever were: a resource may not have been reconciled since the oldest of them.
var algorithms = map[int32]func(*v1alpha2.Materialize) string{1: hashV1}

// Of is the rollout hash of a Materialize.
func Of(m *v1alpha2.Materialize) string { return algorithms[Version](m) }

// With is the rollout hash by the algorithm of a version, to compare with a hash that was made by it.
func With(version int32, m *v1alpha2.Materialize) (string, error) {
	algorithm, found := algorithms[version]
	if !found {
		return "", fmt.Errorf("hash Materialize %s/%s: status.rolloutHashVersion is %d, and this Fairlead knows %v: "+
			"run the Fairlead that wrote it, or a newer one", m.Namespace, m.Name, version, slices.Sorted(maps.Keys(algorithms)))
	}
	return algorithm(m), nil
}

func hashV1(m *v1alpha2.Materialize) string {
	sum := sha256.Sum256(canonical(m))
	return hex.EncodeToString(sum[:])
}

// canonical is the text that is hashed. The annotation has a place of its own beside the spec, so that none of its values
// can look like a spec.
func canonical(m *v1alpha2.Materialize) []byte {
	spec := node{kind: structure}
	for _, member := range specOf(m).members {
		if CausesRollout(member.name) {
			spec.members = append(spec.members, member)
		}
	}
	text := []byte(`{`)
	if forced := m.Annotations[v1alpha2.AnnotationForceRollout]; forced != "" {
		text = append(appendString(append(text, `"annotation":`...), forced), ',')
	}
	return append(spec.appendJSON(append(text, `"spec":`...)), '}')
}
