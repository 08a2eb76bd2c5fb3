package policy

import (
	"reflect"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// fill copies each field of from that is unset in into, and says whether there was any. A pointer to zero is set: a timeout of
// 0s is not the absence of a timeout.
func fill[T any](into **T, from *T) bool {
	whole := *into
	if whole == nil {
		whole = new(T)
	}
	filled := fillStruct(reflect.ValueOf(whole).Elem(), reflect.ValueOf(from).Elem())
	if filled {
		*into = whole
	}
	return filled
}

var ourPackage = reflect.TypeFor[kumav1alpha1.MeshTimeoutConf]().PkgPath()

func fillStruct(into, from reflect.Value) bool {
	filled := false
	for i := range into.NumField() {
		if fillField(into.Field(i), from.Field(i)) {
			filled = true
		}
	}
	return filled
}

func fillField(into, from reflect.Value) bool {
	// Structs of other packages, such as durations, are copied as a whole.
	structured := from.Kind() == reflect.Pointer && from.Type().Elem().Kind() == reflect.Struct && from.Type().Elem().PkgPath() == ourPackage
	switch {
	case from.IsZero():
		return false
	case structured:
		part := into
		if into.IsNil() {
			part = reflect.New(from.Type().Elem())
		}
		filled := fillStruct(part.Elem(), from.Elem())
		if filled {
			into.Set(part)
		}
		return filled
	case into.IsZero():
		into.Set(from)
		return true
	}
	return false
}
