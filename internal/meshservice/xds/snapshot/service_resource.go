package snapshot

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// serviceResource is a MeshService or a MeshMultiZoneService, which defines a destination for each of its ports.
type serviceResource struct {
	kind    model.Kind
	object  types.NamespacedName
	created time.Time
	id      desired.Identity
	mesh    string
	// labels are the object's, with the identity labels as trusted.
	labels    map[string]string
	ports     []kumav1alpha1.Port
	vips      []string
	hostnames []string
	// selector is by tags of inbounds, or by labels of MeshServices; a MeshService may have ref instead.
	selector map[string]string
	ref      string
	// selectorNamespace restricts the selector to inbounds of a namespace, if set.
	selectorNamespace string
	// headless is the headless Service of the pod, if any.
	headless string
	// instances is the number of known instances, and unavailable says that another zone has none.
	instances   uint32
	unavailable bool
}

func readMeshService(obj *kumav1alpha1.MeshService, where desired.ZoneInfo) input {
	c := newServiceResource(model.MeshService, obj, where, obj.Status.Addresses, obj.Status.VIPs)
	c.ports, c.selector = obj.Spec.Ports, obj.Spec.Selector.DataplaneTags
	c.instances, c.unavailable = uint32(max(obj.Status.DataplaneProxies.Healthy, 0)), obj.Spec.State == "Unavailable"
	if ref := obj.Spec.Selector.DataplaneRef; ref != nil {
		c.ref = ref.Name
	}
	c.selectorNamespace, c.headless = desired.SelectorNamespace(obj, where), desired.HeadlessService(obj, where)
	return c
}

func readMultiZone(obj *kumav1alpha1.MeshMultiZoneService, where desired.ZoneInfo) input {
	c := newServiceResource(model.MeshMultiZoneService, obj, where, obj.Status.Addresses, obj.Status.VIPs)
	c.selector, c.id.Zone = obj.Spec.Selector.MeshService.MatchLabels, ""
	for _, port := range obj.Spec.Ports {
		c.ports = append(c.ports, kumav1alpha1.Port{Port: port.Port, Name: port.Name, AppProtocol: port.AppProtocol})
	}
	return c
}

func newServiceResource(
	kind model.Kind, obj metav1.Object, where desired.ZoneInfo, addresses []kumav1alpha1.Address, vips []kumav1alpha1.VIP,
) *serviceResource {
	c := &serviceResource{
		kind: kind, object: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		created: obj.GetCreationTimestamp().Time, id: desired.IdentityOf(obj, where), mesh: desired.MeshOf(obj),
		labels: desired.LabelsOf(obj, where),
	}
	for _, a := range addresses {
		c.hostnames = append(c.hostnames, a.Hostname)
	}
	for _, v := range vips {
		c.vips = append(c.vips, v.IP)
	}
	return c
}

func (c *serviceResource) String() string { return string(c.kind) + " " + c.object.String() }

func (c *serviceResource) belongs() (kind, namespace, name, mesh string) {
	return string(c.kind), c.object.Namespace, c.object.Name, c.mesh
}

func (c *serviceResource) key(port uint32) model.Key {
	return model.Key{Kind: c.kind, Name: c.id.Name, Namespace: c.id.Namespace, Zone: c.id.Zone, Mesh: c.mesh, Port: port}
}

func (c *serviceResource) port(number uint32) *kumav1alpha1.Port {
	for i := range c.ports {
		if uint32(c.ports[i].Port) == number {
			return &c.ports[i]
		}
	}
	return nil
}

// comparePrecedence orders resources with the same identity: by its own name first, then the oldest.
func comparePrecedence(a, b *serviceResource) int {
	own := func(c *serviceResource) bool {
		return c.object.Name == c.id.Name && (c.id.Namespace == "" || c.object.Namespace == c.id.Namespace)
	}
	return cmp.Or(trueFirst(own(a), own(b)), a.created.Compare(b.created),
		cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
}

func firstOf(claims sets.Set[*serviceResource]) *serviceResource {
	return slices.MinFunc(claims.UnsortedList(), comparePrecedence)
}

func (c *serviceResource) set(w *zoneState, present bool) {
	m := w.mesh(c.mesh)
	for _, port := range c.ports {
		key := c.key(uint32(port.Port))
		setItem(&m.services, key, c, present)
		if c.headless != "" {
			setItem(&m.headless, c.headlessKey(key), c, present)
		}
	}
	depend := func(kind, name string) { setItem(&m.dependents, dependency{kind, name}, c, present) }
	depend("Service", types.NamespacedName{Namespace: c.id.Namespace, Name: c.id.Name}.String())
	for _, ip := range c.vips {
		depend("VIP", ip)
	}
	if c.kind == model.MeshService {
		m.byLabels.set(c.labels, c, present)
	}
	switch {
	case c.kind == model.MeshMultiZoneService:
		m.multiZone.set(c.selector, c, present)
	case !c.id.Local:
		depend("Zone", c.id.Zone)
	case c.ref != "":
		depend("Dataplane", types.NamespacedName{Namespace: c.object.Namespace, Name: c.ref}.String())
	case len(c.selector) > 0:
		m.selectors.set(c.selector, c, present)
	}
	m.markDirty(c)
}
