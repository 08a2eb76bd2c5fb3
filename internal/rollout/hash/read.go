package hash

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// reader makes the canonical form of a value of one type.
type reader func(reflect.Value) node

// readerOf looks at a type once, so that reading a value costs no search through tags. The path is that of the value in
// the spec, with [] for any item.
func readerOf(t reflect.Type, path string) reader {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return func(v reflect.Value) node { return quantity(v.Interface().(resource.Quantity)) }
	case reflect.TypeFor[v1alpha2.Duration]():
		return func(v reflect.Value) node { return duration(v1alpha2.Duration(v.String())) }
	case reflect.TypeFor[v1alpha2.UUID]():
		return func(v reflect.Value) node { return uuid(v.String()) }
	}
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value) node { return text(v.String()) }
	case reflect.Bool:
		return func(v reflect.Value) node { return literal(strconv.FormatBool(v.Bool())) }
	case reflect.Int, reflect.Int32, reflect.Int64:
		return func(v reflect.Value) node { return literal(strconv.FormatInt(v.Int(), 10)) }
	case reflect.Slice:
		return readerOfList(readerOf(t.Elem(), path+"[]"))
	case reflect.Map:
		return readerOfMap(readerOf(t.Elem(), path+"[]"))
	case reflect.Struct:
		return readerOfStruct(t, path)
	}
	panic(fmt.Sprintf("the rollout hash has no canonical form for %s at %s", t, path))
}

// readerOfList keeps every item, the empty ones too: an empty argument is one.
func readerOfList(item reader) reader {
	return func(v reflect.Value) node {
		n := node{kind: list, items: make([]node, v.Len())}
		for i := range n.items {
			n.items[i] = item(v.Index(i))
		}
		return n
	}
}

// readerOfMap keeps every entry, the empty ones too: a label without a value is one.
func readerOfMap(value reader) reader {
	return func(v reflect.Value) node {
		n := node{kind: mapping, members: make([]member, 0, v.Len())}
		for entries := v.MapRange(); entries.Next(); {
			n.members = append(n.members, member{entries.Key().String(), value(entries.Value())})
		}
		slices.SortFunc(n.members, byName)
		return n
	}
}

// readerOfStruct leaves out fields that say nothing, so that a type may get further ones and no hash changes.
func readerOfStruct(t reflect.Type, path string) reader {
	fields := fieldsOf(t, path)
	return func(v reflect.Value) node {
		n := node{kind: structure}
		for _, f := range fields {
			if value, isSet := f.value(v); isSet {
				n.members = append(n.members, member{f.name, value})
			}
		}
		return n
	}
}

// field is how one field of a struct is found and read.
type field struct {
	name  string
	index []int
	read  reader
	// pointer tells an explicit zero from an absent value.
	pointer bool
	// defaultJSON is the value that means the same as an absent one, if there is one.
	defaultJSON string
}

func (f field) value(of reflect.Value) (node, bool) {
	v := of.FieldByIndex(f.index)
	if v.IsZero() {
		return node{}, false
	}
	if f.pointer {
		v = v.Elem()
	}
	n := f.read(v)
	if n.kind == scalar {
		if n.json == f.defaultJSON || n.empty && !f.pointer {
			return node{}, false
		}
		return n, true
	}
	return n, len(n.items)+len(n.members) > 0
}

// fieldsOf are the fields of a struct and of those that are inline in it, by JSON name.
func fieldsOf(t reflect.Type, path string) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields = append(fields, fieldOf(f, name, path))
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

func fieldOf(of reflect.StructField, name, path string) field {
	t := of.Type
	f := field{name: name, index: of.Index, pointer: t.Kind() == reflect.Pointer}
	if f.pointer {
		t = t.Elem()
	}
	if path != "" {
		name = path + "." + name
	}
	f.read = readerOf(t, name)
	if value, found := defaults[name]; found {
		f.defaultJSON = f.read(reflect.ValueOf(value)).json
	}
	return f
}

func byName(a, b member) int { return strings.Compare(a.name, b.name) }
