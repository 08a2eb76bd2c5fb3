package policy

import (
	"encoding/json"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// selection is the proxies that a policy selects.
type selection struct {
	// none selects no proxy that Fairlead serves.
	none bool
	// namespace restricts it to the proxies of a namespace, if set.
	namespace string
	// service is the kuma.io/service that an inbound has, and tags are others of the same inbound.
	service string
	tags    map[string]string
	// proxy is the name of a Dataplane. Its namespace does not restrict proxies without a namespace.
	proxy  objectName
	labels map[string]string
	// dataplane says that the policy targets Dataplanes, which is more specific than the mesh.
	dataplane bool
}

func selectionOf(p Policy) selection {
	ref := p.TopLevel()
	if ref == nil {
		return selection{}
	}
	if len(ref.ProxyTypes) > 0 && !slices.Contains(ref.ProxyTypes, "Sidecar") {
		return selection{none: true}
	}
	switch ref.Kind {
	case kumav1alpha1.MeshKind:
		return selection{}
	case kumav1alpha1.MeshSubsetKind:
		return selection{tags: ref.Tags}
	case kumav1alpha1.MeshServiceKind, kumav1alpha1.MeshServiceSubsetKind:
		return selection{service: ref.Name, tags: ref.Tags, none: ref.Name == ""}
	case kumav1alpha1.DataplaneKind:
		sel := selection{labels: ref.Labels, dataplane: true}
		if ref.Name != "" {
			sel.proxy = objectName{ref.Namespace, ref.Name}
			if ref.Namespace == "" {
				sel.proxy.namespace = p.GetNamespace()
			}
		}
		return sel
	}
	return selection{none: true}
}

// key is equal for selections of the same proxies.
func (s selection) key() string {
	text, err := json.Marshal([]any{s.none, s.namespace, s.service, s.tags, s.proxy.namespace, s.proxy.name, s.labels, s.dataplane})
	if err != nil {
		panic(err) // strings and maps can always be encoded
	}
	return string(text)
}

// rank is how specific the selection is.
func (s selection) rank() int {
	switch {
	case s.proxy.name != "":
		return 5
	case s.service != "" && len(s.tags) > 0:
		return 4
	case s.service != "":
		return 3
	case len(s.tags) > 0 || len(s.labels) > 0:
		return 2
	case s.dataplane:
		return 1
	}
	return 0
}

func (s selection) selects(p model.Proxy) bool {
	if s.none || s.namespace != "" && s.namespace != p.ID.Namespace {
		return false
	}
	if s.proxy.name != "" && (s.proxy.name != p.ID.Name || p.ID.Namespace != "" && s.proxy.namespace != p.ID.Namespace) {
		return false
	}
	if !model.MatchesAll(s.labels, p.Labels) {
		return false
	}
	if s.service == "" && len(s.tags) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Inbounds, func(tags map[string]string) bool {
		return (s.service == "" || tags[kumav1alpha1.TagService] == s.service) && model.MatchesAll(s.tags, tags)
	})
}
