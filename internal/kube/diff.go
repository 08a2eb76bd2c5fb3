package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// FirstDifference is the path of the first field in which a live object differs from the desired one, empty if there is none.
// Fields that the desired object does not set do not count: they are defaults, or belong to other clients. Nor do the
// excluded paths. Elements of lists are matched as the API server merges them.
//
// Comparing typed values with structured-merge-diff would not do: a default inside an atomic list, such as the scope of a
// webhook's rule, would make that list another one, as would a quantity in another notation.
func FirstDifference(desired, live *unstructured.Unstructured, excluded ...string) string {
	d := differ{excluded: excluded}
	if d.compareMaps("", desired.Object, desired.Object, live.Object, nil) == "" {
		return "" // which saves most comparisons the conversion to Go types
	}
	want, have, typeOf := canonical(desired, live)
	d.emptyIsAbsent = typeOf == nil
	return d.compareMaps("", desired.Object, want, have, typeOf)
}

// differ compares a desired value as it was written, the same in canonical form, and the live one in canonical form. The
// written one decides which fields are desired: the canonical form has no empty ones.
type differ struct {
	excluded []string
	// emptyIsAbsent is for kinds without a Go type, which have no canonical form.
	emptyIsAbsent bool
}

func (d differ) compare(path string, written, want, have any, typeOf fieldTypes, list listType) string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return path
		}
		written, ok := written.(map[string]any)
		if !ok {
			written = want
		}
		return d.compareMaps(path, written, want, have, typeOf)
	case []any:
		have, ok := have.([]any)
		if !ok {
			return path
		}
		written, ok := written.([]any)
		if !ok || len(written) != len(want) {
			written = want
		}
		return d.compareLists(path, written, want, have, typeOf, list)
	}
	if !equalScalars(want, have) {
		return path
	}
	return ""
}

func (d differ) compareMaps(path string, written, want, have map[string]any, typeOf fieldTypes) string {
	for _, key := range slices.Sorted(maps.Keys(written)) {
		at := FieldPath(path, key)
		wanted, isWanted := want[key]
		has := have[key]
		switch {
		case written[key] == nil || slices.Contains(d.excluded, at):
		case !isWanted:
			// Desired is the zero value, which the canonical form leaves out. An empty map desires nothing.
			if _, isMap := written[key].(map[string]any); !isMap && has != nil {
				return at
			}
		case has == nil:
			if wanted != nil && !(d.emptyIsAbsent && isEmpty(wanted)) {
				return at
			}
		default:
			inner, list := typeOfField(typeOf, key, wanted)
			if at == "metadata" && typeOf == nil {
				inner = metadataType
			}
			if differing := d.compare(at, written[key], wanted, has, inner, list); differing != "" {
				return differing
			}
		}
	}
	return ""
}

func (d differ) compareLists(path string, written, want, have []any, typeOf fieldTypes, list listType) string {
	switch {
	case list.merges && list.key != "":
		for i := range want {
			if differing := d.compareByKey(path, written[i], want[i], have, typeOf, list.key); differing != "" {
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
		if differing := d.compare(fmt.Sprintf("%s[%d]", path, i), written[i], want[i], have[i], typeOf, listType{}); differing != "" {
			return differing
		}
	}
	return ""
}

// compareByKey looks for an element among those of the same key. There can be several, such as a port for TCP and for UDP.
func (d differ) compareByKey(path string, written, want any, have []any, typeOf fieldTypes, key string) string {
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
		first := d.compare(at, written, want, has, typeOf, listType{})
		if first == "" {
			return ""
		}
		if differing == at {
			differing = first
		}
	}
	return differing
}

// fieldTypes are the fields of a Go type; nil for a value without one.
type fieldTypes = strategicpatch.LookupPatchMeta

// metadataType has the fields of the metadata, which are those of every kind.
var metadataType = func() fieldTypes {
	of, err := strategicpatch.NewPatchMetaFromStruct(metav1.ObjectMeta{})
	utilruntime.Must(err)
	return of
}()

// listType is how the API server merges a list: as one value, as a set, or by a key of its elements.
type listType struct {
	merges bool
	key    string
}

func typeOfField(of fieldTypes, key string, value any) (fieldTypes, listType) {
	if of == nil {
		return nil, listType{}
	}
	switch value.(type) {
	case map[string]any:
		if inner, _, err := of.LookupPatchMetadataForStruct(key); err == nil {
			return inner, listType{}
		}
	case []any:
		if inner, merge, err := of.LookupPatchMetadataForSlice(key); err == nil {
			return inner, listType{slices.Contains(merge.GetPatchStrategies(), "merge"), merge.GetPatchMergeKey()}
		}
	}
	return nil, listType{}
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

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// FieldPath is the path of a field below another one. A key with dots or slashes is put in brackets.
func FieldPath(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
