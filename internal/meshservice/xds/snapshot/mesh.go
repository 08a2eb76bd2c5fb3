package snapshot

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// mesh is the state of a mesh, and what is built from it.
type mesh struct {
	meshInput
	state    *zoneState
	vips     map[string]string
	switched map[string]bool
	policies map[*policyInput]kumav1alpha1.Policy

	proxies    map[model.ProxyID]*dataplane
	candidates map[model.ProxyID]sets.Set[*dataplane]
	byObject   map[types.NamespacedName]*dataplane
	inbounds   tagIndex[*inbound]
	// remote are the ingresses to the instances of a tag in other zones.
	remote map[string]map[*ingress]available

	services map[model.Key]sets.Set[*serviceResource]
	// headless are the pods of headless Services.
	headless map[model.Key]sets.Set[*serviceResource]
	// dependents are the services that depend on a Service, a Dataplane, a VIP or the ingresses of a zone.
	dependents map[dependency]sets.Set[*serviceResource]
	// selectors are those of MeshServices, by tags; byLabels are MeshServices by labels, and multiZone the selectors over
	// them.
	selectors selectorIndex[*serviceResource]
	byLabels  tagIndex[*serviceResource]
	multiZone selectorIndex[*serviceResource]

	destinations map[model.Key]*destination
	// byName are the destinations of resources by the name of the object and by display name.
	byName map[string]sets.Set[*destination]
	// directory resolves the backends of routes; built on demand.
	directory *policy.Directory
	policySet *policy.Set
	// previous are the variants before a recompilation of policies.
	previous  map[*destination]map[*policy.Class]*variant
	reachSets map[string]*reachSet
	groups    map[groupKey]*group
	grouped   map[model.ProxyID]*group
	dirty     dirtySet
	// listenerOwners and hostOwners are scratch space of buildConfig.
	listenerOwners, hostOwners map[string]listenerOwner
}

// dirtySet is what the next build has to update.
type dirtySet struct {
	keys     sets.Set[model.Key]
	proxies  sets.Set[model.ProxyID]
	policies bool
	mode     bool
}

func newDirtySet() dirtySet {
	return dirtySet{keys: sets.New[model.Key](), proxies: sets.New[model.ProxyID]()}
}

func newMesh(w *zoneState, name string) *mesh {
	return &mesh{
		meshInput: meshInput{name: name, mode: model.Disabled}, state: w,
		proxies:        map[model.ProxyID]*dataplane{},
		destinations:   map[model.Key]*destination{},
		policySet:      policy.Compile(nil, w.zone),
		reachSets:      map[string]*reachSet{},
		groups:         map[groupKey]*group{},
		grouped:        map[model.ProxyID]*group{},
		dirty:          newDirtySet(),
		listenerOwners: map[string]listenerOwner{},
		hostOwners:     map[string]listenerOwner{},
	}
}

// isEmpty says that the mesh can be dropped.
func (m *mesh) isEmpty() bool {
	return len(m.proxies)+len(m.grouped)+len(m.destinations)+len(m.services)+len(m.policies)+len(m.vips)+len(m.switched) == 0 &&
		m.mode == model.Disabled && !m.localFirst
}

// meshInput is the relevant part of a Mesh.
type meshInput struct {
	name string
	mode model.Mode
	// localFirst says that instances of other zones are a fallback for tags.
	localFirst bool
}

func readMesh(obj *kumav1alpha1.Mesh) *meshInput {
	return &meshInput{
		name: obj.Name, mode: model.Mode(obj.ModeInForce()),
		localFirst: obj.Spec.Routing != nil && obj.Spec.Routing.LocalityAwareLoadBalancing,
	}
}

func (i *meshInput) set(w *zoneState, present bool) {
	m, now := w.mesh(i.name), *i
	if !present {
		now = meshInput{name: i.name, mode: model.Disabled}
	}
	m.dirty.mode = m.dirty.mode || m.mode != now.mode
	if m.localFirst != now.localFirst {
		for key := range m.destinations {
			if key.Kind == model.Tag {
				m.dirty.keys.Insert(key)
			}
		}
	}
	m.meshInput = now
}

func (m *mesh) setVIPs(vips map[string]string) {
	for _, all := range []map[string]string{m.vips, vips} {
		for tag := range all {
			if m.vips[tag] != vips[tag] {
				m.dirty.keys.Insert(model.TagKey(tag))
			}
		}
	}
	m.vips = vips
}

func (m *mesh) setSwitched(consumers map[string]bool) {
	if maps.Equal(m.switched, consumers) {
		return
	}
	for id, d := range m.proxies {
		if m.switched[d.proxy.Consumer] != consumers[d.proxy.Consumer] {
			m.dirty.proxies.Insert(id)
		}
	}
	m.switched = consumers
}

// markDirty marks the destinations of a service, and those built from them.
func (m *mesh) markDirty(c *serviceResource) {
	for _, port := range c.ports {
		key := c.key(uint32(port.Port))
		m.dirty.keys.Insert(key)
		if c.headless != "" {
			m.dirty.keys.Insert(c.headlessKey(key))
		}
	}
	if c.kind == model.MeshService {
		m.multiZone.visit(c.labels, m.markDirty)
	}
}

// dependency is what a service depends on: a NamespacedName, or the name of a zone or VIP.
type dependency struct{ kind, name string }

func (m *mesh) markDependents(kind, name string) {
	for c := range m.dependents[dependency{kind, name}] {
		m.markDirty(c)
	}
}

// build brings the mesh up to date: destinations, policies, then configurations. It returns the proxies whose configuration
// has changed or is deleted.
func (m *mesh) build() []model.ProxyID {
	if m.dirty.policies {
		m.compilePolicies()
	}
	changes := m.updateDestinations()
	// References may resolve differently.
	structural := m.dirty.mode || len(changes.added)+len(changes.removed) > 0
	if structural {
		m.rebuildRoutes(&changes)
	}
	m.updateReachSets(changes)
	changed := m.assignGroups()
	if structural {
		for _, g := range m.groups {
			g.dirty = g.dirty || len(g.outbounds) > 0
		}
	}
	for _, d := range changes.changed {
		d.eachGroup(func(g *group) { g.dirty = true })
	}
	for _, d := range changes.endpointsChanged {
		d.eachGroup(func(g *group) { g.newEndpoints = append(g.newEndpoints, d) })
	}
	for _, g := range m.groups {
		changed = append(changed, g.build(m)...)
	}
	if m.dirty.policies {
		for _, d := range m.destinations {
			sent := d.sentVariants()
			maps.DeleteFunc(d.variants, func(_ string, v *variant) bool { return !sent.Has(v) })
		}
	}
	m.dirty, m.previous = newDirtySet(), nil
	return changed
}
