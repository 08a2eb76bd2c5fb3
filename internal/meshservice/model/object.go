package model

import (
	"encoding/json"
	"fmt"
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

// Backend is a backend of a route.
type Backend struct {
	kumav1alpha1.BackendRef
	// Path is that of the reference, within its entry.
	Path string
	// Mirror says that it gets a copy of the requests only.
	Mirror bool
}

// RouteBackends returns the kind of the route that the default of an entry belongs to, and the backends of all of its rules, with
// those that requests are mirrored to. The kind is empty for an entry of any other policy.
func RouteBackends(conf any) (kind string, backends []Backend) {
	add := func(rule int, refs []kumav1alpha1.BackendRef) {
		for i, ref := range refs {
			backends = append(backends, Backend{BackendRef: ref, Path: fmt.Sprintf("rules[%d].default.backendRefs[%d]", rule, i)})
		}
	}
	switch to := conf.(type) {
	case *kumav1alpha1.MeshHTTPRouteTo:
		for i, rule := range to.Rules {
			add(i, rule.Default.BackendRefs)
			for j, written := range rule.Default.Filters {
				if ref := mirrorOf(written.Raw); ref != nil {
					path := fmt.Sprintf("rules[%d].default.filters[%d].requestMirror.backendRef", i, j)
					backends = append(backends, Backend{BackendRef: *ref, Path: path, Mirror: true})
				}
			}
		}
		return kumav1alpha1.MeshHTTPRouteKind, backends
	case *kumav1alpha1.MeshTCPRouteTo:
		for i, rule := range to.Rules {
			add(i, rule.Default.BackendRefs)
		}
		return kumav1alpha1.MeshTCPRouteKind, backends
	}
	return "", nil
}

// mirrorOf returns the backend that a filter mirrors requests to, nil if it does not. A rule with an invalid filter is left out, and
// that is reported elsewhere.
func mirrorOf(filter []byte) *kumav1alpha1.BackendRef {
	var written struct {
		RequestMirror *struct {
			BackendRef kumav1alpha1.BackendRef `json:"backendRef"`
		} `json:"requestMirror"`
	}
	if json.Unmarshal(filter, &written) != nil || written.RequestMirror == nil {
		return nil
	}
	return &written.RequestMirror.BackendRef
}
