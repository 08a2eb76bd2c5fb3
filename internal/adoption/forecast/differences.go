package forecast

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/kube"
)

// Difference is a field of an object that would change. From or To is empty if the object does not have the field.
type Difference struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// differences are the changes of an object that concern users: not those of its status, server metadata and ownership labels. The
// data of a Secret is hidden.
func differences(before, after *unstructured.Unstructured) []Difference {
	all := compareFields("", manifest.UserContent(before), manifest.UserContent(after))
	if after.GroupVersionKind().GroupKind().String() != "Secret" {
		return all
	}
	for i, d := range all {
		if strings.HasPrefix(d.Field, "data") || strings.HasPrefix(d.Field, "stringData") || strings.Contains(d.Field, manifest.AnnotationLastApplied) {
			all[i].From, all[i].To = hidden(d.From), hidden(d.To)
		}
	}
	return all
}

func hidden(value string) string {
	if value == "" {
		return ""
	}
	return "(hidden)"
}

func compareFields(path string, before, after map[string]any) []Difference {
	fields := map[string]any{}
	maps.Copy(fields, before)
	maps.Copy(fields, after)
	var all []Difference
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, compareValues(kube.FieldPath(path, field), before[field], after[field])...)
	}
	return all
}

func compareValues(path string, before, after any) []Difference {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	oldFields, wereFields := before.(map[string]any)
	newFields, areFields := after.(map[string]any)
	if wereFields && areFields || wereFields && after == nil && texts(oldFields) || areFields && before == nil && texts(newFields) {
		return compareFields(path, oldFields, newFields)
	}
	oldList, wasList := before.([]any)
	newList, isList := after.([]any)
	if (wasList || before == nil) && (isList || after == nil) {
		return compareLists(path, oldList, newList)
	}
	return []Difference{{Field: path, From: written(before), To: written(after)}}
}

// texts holds for a map of strings, such as labels, whose entries are listed one by one even if all are new.
func texts(fields map[string]any) bool {
	for _, value := range fields {
		if _, text := value.(string); !text {
			return false
		}
	}
	return len(fields) > 0
}

// compareLists compares items by their key, if they have one, and otherwise by index.
func compareLists(path string, before, after []any) []Difference {
	key := keyFor(before, after)
	if key == "" {
		return compareByPlace(path, before, after)
	}
	index := func(list []any) (order []string, items map[string]any) {
		items = map[string]any{}
		for _, item := range list {
			name := fmt.Sprint(item.(map[string]any)[key])
			order, items[name] = append(order, name), item
		}
		return order, items
	}
	was, old := index(before)
	is, now := index(after)
	var all []Difference
	for _, name := range was {
		if _, found := now[name]; !found {
			all = append(all, Difference{Field: path + "[" + name + "]", From: writtenItem(old[name], key)})
			continue
		}
		all = append(all, compareValues(path+"["+name+"]", old[name], now[name])...)
	}
	for _, name := range is {
		if _, found := old[name]; !found {
			all = append(all, Difference{Field: path + "[" + name + "]", To: writtenItem(now[name], key)})
		}
	}
	kept := func(names []string, in map[string]any) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, found := in[name]; return !found })
	}
	if b, a := kept(was, now), kept(is, old); !slices.Equal(b, a) {
		all = append(all, Difference{Field: path + " (order)", From: strings.Join(b, ", "), To: strings.Join(a, ", ")})
	}
	return all
}

func compareByPlace(path string, before, after []any) []Difference {
	var all []Difference
	for i := range max(len(before), len(after)) {
		var b, a any
		if i < len(before) {
			b = before[i]
		}
		if i < len(after) {
			a = after[i]
		}
		all = append(all, compareValues(fmt.Sprintf("%s[%d]", path, i), b, a)...)
	}
	return all
}

// keyFor is the field that tells the items of two lists apart, if there is one.
func keyFor(lists ...[]any) string {
	for _, key := range []string{"name", "mountPath", "containerPort", "port", "key", "ip", "host"} {
		if tellsApart(key, lists) {
			return key
		}
	}
	return ""
}

func tellsApart(key string, lists [][]any) bool {
	for _, list := range lists {
		seen := map[any]bool{}
		for _, item := range list {
			fields, ok := item.(map[string]any)
			if !ok {
				return false
			}
			switch value := fields[key].(type) {
			case string, int64, float64:
				if seen[value] {
					return false
				}
				seen[value] = true
			default:
				return false
			}
		}
	}
	return true
}

// written is a value as it is shown.
func written(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		if value == "" {
			return `""`
		}
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// writtenItem is an item of a list as it is shown beside its key.
func writtenItem(item any, key string) string {
	fields := maps.Clone(item.(map[string]any))
	value, text := fields["value"].(string)
	switch delete(fields, key); {
	case len(fields) == 0:
		return "{}"
	case len(fields) == 1 && text:
		return written(value)
	}
	return written(fields)
}
