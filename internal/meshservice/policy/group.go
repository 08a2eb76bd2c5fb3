package policy

import (
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// group holds the entries of policies with the same selection of proxies, indexed by destination.
type group struct {
	id         uint32
	selection  selection
	everything []*entry
	// byTag is by the value of a tag; byTagService by its MeshService.
	byTag        map[string][]*entry
	byTagService map[objectName][]*entry
	// byName are those for a resource by its name as an object; the namespace is empty where none is written.
	byName map[resourceName][]*entry
	// byDisplayName are those with that label; byLabels those with other labels only, by the namespace that they are restricted to.
	byDisplayName map[resourceName][]*entry
	byLabels      map[string][]*entry
	// tenantOnly are entries of tenants, which apply to proxies of others in part at most.
	tenantOnly *group
	// affinityKeys are the keys of the affinity tags of the entries.
	affinityKeys sets.Set[string]
}

type resourceName struct {
	kind            model.Kind
	namespace, name string
}

func newGroup(id uint32, selection selection) *group {
	return &group{
		id: id, selection: selection,
		byTag: map[string][]*entry{}, byTagService: map[objectName][]*entry{},
		byName: map[resourceName][]*entry{}, byDisplayName: map[resourceName][]*entry{}, byLabels: map[string][]*entry{},
		affinityKeys: sets.New[string](),
	}
}

func (g *group) add(e *entry) {
	r := &e.reference
	if conf, ok := e.conf.(*kumav1alpha1.MeshLoadBalancingStrategyConf); ok && r.unusable == "" {
		g.affinityKeys.Insert(affinityKeys(conf)...)
	}
	displayName, displayed := r.labels[kumav1alpha1.LabelDisplayName]
	switch {
	case r.unusable != "":
	case r.everything:
		g.everything = append(g.everything, e)
	case r.kind == model.Tag:
		g.byTag[r.name] = append(g.byTag[r.name], e)
		g.byTagService[r.tagService] = append(g.byTagService[r.tagService], e)
	case displayed:
		key := resourceName{kind: r.kind, name: displayName}
		g.byDisplayName[key] = append(g.byDisplayName[key], e)
	case r.labels != nil:
		g.byLabels[r.only] = append(g.byLabels[r.only], e)
	default:
		key := resourceName{kind: r.kind, namespace: r.namespace, name: r.name}
		g.byName[key] = append(g.byName[key], e)
		if open := (resourceName{kind: r.kind, name: r.name}); !r.namespaceWritten && open != key {
			g.byName[open] = append(g.byName[open], e)
		}
	}
}

// candidates visits lists with all entries for the destination. Some are visited twice, and some target other destinations.
func (g *group) candidates(d *model.Destination, visit func([]*entry)) {
	visit(g.everything)
	if d.Key.Kind == model.Tag {
		visit(g.byTag[d.Key.Name])
		return
	}
	if d.Key.Kind == model.MeshService {
		visit(g.byTagService[objectName{d.Key.Namespace, d.Key.Name}])
	}
	visit(g.byName[resourceName{d.Key.Kind, d.Namespace, d.Name}])
	if d.Key.Namespace == "" {
		visit(g.byName[resourceName{kind: d.Key.Kind, name: d.Name}])
		visit(g.byName[resourceName{kind: d.Key.Kind, name: d.Key.Name}])
	}
	if displayName, found := labelOf(d, kumav1alpha1.LabelDisplayName); found {
		visit(g.byDisplayName[resourceName{kind: d.Key.Kind, name: displayName}])
	}
	visit(g.byLabels[""])
	if d.Key.Namespace != "" {
		visit(g.byLabels[d.Key.Namespace])
	}
}
