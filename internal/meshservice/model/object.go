package model

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Object is a resource with metadata, as client.Object is.
type Object interface {
	metav1.Object
	runtime.Object
}

// KindOf returns the kind of an object by its Go type, since objects from a cache have no TypeMeta.
func KindOf(object Object) string { return reflect.TypeOf(object).Elem().Name() }

// MatchesAll says whether labels or tags have every wanted pair.
func MatchesAll(wanted, have map[string]string) bool {
	for name, value := range wanted {
		if got, found := have[name]; !found || got != value {
			return false
		}
	}
	return true
}

// RouteBackends returns the kind of the route that the default of an entry belongs to, and the backends of each of its rules. The
// kind is empty for an entry of any other policy.
func RouteBackends(conf any) (kind string, rules [][]kumav1alpha1.BackendRef) {
	switch to := conf.(type) {
	case *kumav1alpha1.MeshHTTPRouteTo:
		for _, rule := range to.Rules {
			rules = append(rules, rule.Default.BackendRefs)
		}
		return kumav1alpha1.MeshHTTPRouteKind, rules
	case *kumav1alpha1.MeshTCPRouteTo:
		for _, rule := range to.Rules {
			rules = append(rules, rule.Default.BackendRefs)
		}
		return kumav1alpha1.MeshTCPRouteKind, rules
	}
	return "", nil
}
