package faults

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	uuid      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// scrubber removes from objects what differs from one world to the next.
type scrubber struct{ names *strings.Replacer }

// newScrubber knows the given names, and the generated ones of the objects.
func newScrubber(names map[string]string, objects []unstructured.Unstructured) scrubber {
	all := map[string]string{}
	for _, obj := range objects {
		if prefix := obj.GetGenerateName(); prefix != "" && strings.HasPrefix(obj.GetName(), prefix) {
			all[obj.GetName()] = prefix + "*"
		}
	}
	for from, to := range names {
		all[from] = to
	}
	froms := make([]string, 0, len(all))
	for from := range all {
		froms = append(froms, from)
	}
	// A Replacer prefers the pair that comes first, so a name goes before
	// another one that is its prefix.
	slices.SortFunc(froms, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(froms))
	for _, from := range froms {
		pairs = append(pairs, from, all[from])
	}
	return scrubber{names: strings.NewReplacer(pairs...)}
}

func (s scrubber) object(obj *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = ""
	}
	if len(owners) > 0 {
		obj.SetOwnerReferences(owners)
	}
	if managers := obj.GetManagedFields(); len(managers) > 0 {
		for i := range managers {
			managers[i].Time = nil
		}
		// The server orders them by the time that was just removed.
		slices.SortFunc(managers, func(a, b metav1.ManagedFieldsEntry) int {
			return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation),
				cmp.Compare(a.Subresource, b.Subresource))
		})
		obj.SetManagedFields(managers)
	}
	obj.Object = s.value(obj.Object).(map[string]any)
}

// value replaces names, times and uids in every key and string.
func (s scrubber) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[s.text(key)] = s.value(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = s.value(inner)
		}
		return out
	case string:
		return s.text(v)
	}
	return v
}

func (s scrubber) text(text string) string {
	text = s.names.Replace(text)
	text = timestamp.ReplaceAllString(text, "<time>")
	return uuid.ReplaceAllString(text, "<uid>")
}
