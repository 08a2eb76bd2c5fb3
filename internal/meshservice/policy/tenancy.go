package policy

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// tenantOf is the namespace that a policy is restricted to: on Kubernetes, tenants write in all namespaces but the system
// namespace, and must not affect calls of others. It is empty for a policy that applies everywhere.
func tenantOf(p Policy, where desired.ZoneInfo) string {
	if where.IsUniversal() || p.GetNamespace() == where.SystemNamespace {
		return ""
	}
	return p.GetNamespace()
}

// place adds an entry to the groups that it applies to. An entry of a tenant applies to its own proxies, and in part to
// all.
func (s *Set) place(e *entry, all, own *group, tenant string) {
	if tenant == "" {
		all.add(e)
		return
	}
	own.add(e)
	if all.tenantOnly == nil {
		all.tenantOnly = newGroup(all.id, all.selection)
	}
	all.tenantOnly.add(e)
	if part, found := e.reference.within(tenant); found && staysWithin(e.conf, tenant) {
		public := *e
		public.reference, public.conf = part, forAnyProxy(e.conf)
		all.add(&public)
	}
}

// within is the part of a reference that targets services of a namespace, and whether there can be any.
func (r reference) within(namespace string) (part reference, found bool) {
	switch {
	case r.unusable != "" || r.everything:
		return r, false
	case r.kind == model.Tag:
		return r, r.tagService.namespace == namespace
	case r.labels != nil:
		found = r.labelsAllow(objectName{namespace: namespace})
	default:
		found = r.namespace == namespace
	}
	r.only = namespace
	return r, found
}

// staysWithin says whether all backends of a route are in a namespace.
func staysWithin(conf any, namespace string) bool {
	_, backends := model.RouteBackends(conf)
	for _, backend := range backends {
		if !isWithin(backend.BackendRef, namespace) {
			return false
		}
	}
	return true
}

func isWithin(ref kumav1alpha1.BackendRef, namespace string) bool {
	r := backendOf(ref, namespace)
	_, found := r.within(namespace)
	if r.labels == nil || !found {
		return found
	}
	return r.labels[kumav1alpha1.LabelNamespace] == namespace || r.labels[kumav1alpha1.LabelKubernetesNamespace] == namespace
}

// whyTenantOnly is why an entry of a tenant does not apply to proxies of others.
func (m match) whyTenantOnly(system string) string {
	tenant, scope := m.policy.namespace, "proxies and services of that namespace"
	if _, found := m.reference.within(tenant); found && !staysWithin(m.conf, tenant) {
		scope = "proxies of that namespace, since its backends are outside"
	}
	return fmt.Sprintf("%s; a policy of namespace %s applies only to %s: move it to namespace %s", m.why(), tenant, scope, system)
}

// namespaceOf is the namespace of the service of a destination, in any zone.
func namespaceOf(d *model.Destination) string {
	if d.Key.Kind == model.Tag {
		return tagServiceOf(d.Key.Name).namespace
	}
	return d.Key.Namespace
}
