package objects

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Drift says why an object has to be applied again, empty if it is as desired. Fields that are not desired explicitly are
// left to defaults and to other owners.
func Drift(want, have *unstructured.Unstructured) string {
	// Only the digest shows that a field was desired before and no longer is.
	asBefore := want.GetAnnotations()[v1alpha2.AnnotationApplied] == have.GetAnnotations()[v1alpha2.AnnotationApplied]
	field := firstDifference("", want.Object, have.Object)
	switch {
	case field != "" && asBefore:
		return field + " was changed by another client"
	case field != "":
		return field + " changes"
	case !asBefore:
		return "fields are removed"
	}
	return ""
}

// firstDifference is the path of the first field in which have does not satisfy want.
func firstDifference(path string, want, have any) string {
	satisfied := want == nil
	switch want := want.(type) {
	case nil:
	case map[string]any:
		has, ok := have.(map[string]any)
		if satisfied = ok || len(want) == 0 && have == nil; !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if key == v1alpha2.AnnotationApplied {
				continue
			}
			if field := firstDifference(joinPath(path, key), want[key], has[key]); field != "" {
				return field
			}
		}
	case []any:
		has, ok := have.([]any)
		if satisfied = ok || len(want) == 0; ok {
			return firstListDifference(path, want, has)
		}
	default:
		satisfied = want == have
	}
	if satisfied {
		return ""
	}
	return path
}

// firstListDifference compares elements by their merge key, so that other owners can add theirs, or else by index.
func firstListDifference(path string, want, have []any) string {
	key := listKey(want)
	if key == "" && len(want) != len(have) {
		return path
	}
	for i, wanted := range want {
		if key == "" {
			if field := firstDifference(fmt.Sprintf("%s[%d]", path, i), wanted, have[i]); field != "" {
				return field
			}
			continue
		}
		name := wanted.(map[string]any)[key]
		at := fmt.Sprintf("%s[%s=%v]", path, key, name)
		found := slices.IndexFunc(have, func(element any) bool {
			has, ok := element.(map[string]any)
			return ok && has[key] == name
		})
		if found < 0 {
			return at
		}
		if field := firstDifference(at, wanted, have[found]); field != "" {
			return field
		}
	}
	return ""
}

// listKey is the merge key of a list, empty if it has none.
func listKey(list []any) string {
	for _, key := range []string{"name", "mountPath", "uid"} {
		if len(list) > 0 && !slices.ContainsFunc(list, func(element any) bool {
			fields, ok := element.(map[string]any)
			return !ok || fields[key] == nil
		}) {
			return key
		}
	}
	return ""
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
