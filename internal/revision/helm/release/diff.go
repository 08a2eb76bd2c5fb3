package release

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Differs tells whether a live object differs from the desired one, and names the first such field. Fields that the desired
// object does not set do not count, nor do fields that other clients must own.
func Differs(desired, live *unstructured.Unstructured) (field string, differs bool) {
	desired = mergeLiveFields(withoutStringData(desired), live)
	want, have, of := canonical(desired, live)
	field = compareMaps("", desired.Object, want, have, of)
	return field, field != ""
}

// shape is what the Go type of a kind tells about its fields; nil where there is none.
type shape = strategicpatch.LookupPatchMeta

// compare returns the path of the first field in which have does not satisfy want. Both are canonical; said is want in
// the words of the chart, and tells what is desired at all.
func compare(path string, said, want, have any, of shape, list listKind) string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return path
		}
		said, ok := said.(map[string]any)
		if !ok {
			said = want
		}
		return compareMaps(path, said, want, have, of)
	case []any:
		have, ok := have.([]any)
		if !ok {
			return path
		}
		said, ok := said.([]any)
		if !ok || len(said) != len(want) {
			said = want
		}
		return compareLists(path, said, want, have, of, list)
	}
	if !equalScalars(want, have) {
		return path
	}
	return ""
}

func compareMaps(path string, said, want, have map[string]any, of shape) string {
	for _, key := range slices.Sorted(maps.Keys(said)) {
		at := field(path, key)
		wanted, isWanted := want[key]
		has, isThere := have[key]
		switch {
		case said[key] == nil:
		case !isWanted && isThere && !isMap(said[key]):
			return at // desired is what goes without saying, and something else has been said
		case !isWanted:
		case !isThere || has == nil:
			if wanted != nil {
				return at
			}
		default:
			inner, list := lookUp(of, key, wanted)
			if differing := compare(at, said[key], wanted, has, inner, list); differing != "" {
				return differing
			}
		}
	}
	return ""
}

// listKind is how the API server merges a list: as one value, as a set, or by a key of its elements.
type listKind struct {
	merges bool
	key    string
}

func lookUp(of shape, key string, value any) (shape, listKind) {
	if of == nil {
		return nil, listKind{}
	}
	switch value.(type) {
	case map[string]any:
		if inner, _, err := of.LookupPatchMetadataForStruct(key); err == nil {
			return inner, listKind{}
		}
	case []any:
		if inner, merge, err := of.LookupPatchMetadataForSlice(key); err == nil {
			return inner, listKind{slices.Contains(merge.GetPatchStrategies(), "merge"), merge.GetPatchMergeKey()}
		}
	}
	return nil, listKind{}
}

func compareLists(path string, said, want, have []any, of shape, list listKind) string {
	switch {
	case list.merges && list.key != "":
		for i := range want {
			if differing := compareByKey(path, said[i], want[i], have, of, list.key); differing != "" {
				return differing
			}
		}
		return ""
	case list.merges:
		for _, wanted := range want {
			if !slices.ContainsFunc(have, func(has any) bool { return equalScalars(wanted, has) }) {
				return path
			}
		}
		return ""
	}
	if len(want) != len(have) {
		return path
	}
	for i := range want {
		if differing := compare(fmt.Sprintf("%s[%d]", path, i), said[i], want[i], have[i], of, listKind{}); differing != "" {
			return differing
		}
	}
	return ""
}

// compareByKey looks for an element among those of the same key. There can be several, such as a port that is there for
// TCP and for UDP.
func compareByKey(path string, said, want any, have []any, of shape, key string) string {
	wanted, ok := want.(map[string]any)
	if !ok {
		return path
	}
	at := fmt.Sprintf("%s[%s=%v]", path, key, wanted[key])
	differing := at
	for _, has := range have {
		has, ok := has.(map[string]any)
		if !ok || !equalScalars(wanted[key], has[key]) {
			continue
		}
		first := compare(at, said, want, has, of, listKind{})
		if first == "" {
			return ""
		}
		if differing == at {
			differing = first
		}
	}
	return differing
}

func equalScalars(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, isNumber := number(a)
	y, isToo := number(b)
	return isNumber && isToo && x == y
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case int:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

func field(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
