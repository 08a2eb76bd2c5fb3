package desired

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// IsMeshServiceName says whether a value of kuma.io/service is valid as the name of a MeshService.
func IsMeshServiceName(service string) bool { return validation.IsDNS1123Label(service) == nil }

// ServicesOf returns the values of kuma.io/service that a Dataplane serves, sorted. The rules are those of its namespace.
func ServicesOf(dataplane *kumav1alpha1.Dataplane, rules NamespaceRules, where ZoneInfo) []string {
	if !IsTrusted(dataplane, where) && !rules.AllowsMesh(MeshOf(dataplane)) {
		return nil
	}
	var all []string
	for i := range dataplane.Spec.Networking.Inbound {
		inbound := &dataplane.Spec.Networking.Inbound[i]
		if service := inbound.Tags[kumav1alpha1.TagService]; service != "" && inbound.InForce() != kumav1alpha1.InboundIgnored &&
			RefusedTag(dataplane, inbound.Tags, rules, where) == "" {
			all = append(all, service)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// UniversalService returns the MeshService of a value of kuma.io/service.
func UniversalService(name, service, mesh string, ports []kumav1alpha1.Port, where ZoneInfo) *kumav1alpha1.MeshService {
	return &kumav1alpha1.MeshService{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: where.SystemNamespace, Labels: identityLabels(service, "", mesh, where)},
		Spec: kumav1alpha1.MeshServiceSpec{
			Selector: kumav1alpha1.MeshServiceSelector{DataplaneTags: map[string]string{kumav1alpha1.TagService: service}}, Ports: ports,
		},
	}
}

// UniversalName returns the name of the MeshService of a service, and whether it is free: the existing one, or the name of
// the service, or with the mesh as suffix if another mesh or zone has that. An unmanaged MeshService of the same service
// leaves none.
func UniversalName(service, mesh string, there func(name string) *kumav1alpha1.MeshService, where ZoneInfo) (name string, free bool) {
	vacant := ""
	for _, name := range []string{service, service + "." + mesh} {
		other := there(name)
		if other == nil {
			vacant = cmp.Or(vacant, name)
			continue
		}
		id := IdentityOf(other, where)
		if id.Local && id.Name == service && MeshOf(other) == mesh {
			return name, IsGenerated(other, where)
		}
	}
	return vacant, vacant != ""
}

// UniversalPorts returns the ports of a service, those of the oldest Dataplane. The conflict describes a Dataplane with
// other ports; it is empty if all agree.
func UniversalPorts(service string, dataplanes []*kumav1alpha1.Dataplane) (ports []kumav1alpha1.Port, conflict string) {
	var oldest *kumav1alpha1.Dataplane
	for _, dataplane := range slices.SortedFunc(slices.Values(dataplanes), compareAge[*kumav1alpha1.Dataplane]) {
		its := portsServed(service, dataplane)
		switch {
		case len(its) == 0:
		case oldest == nil:
			oldest, ports = dataplane, its
		case conflict == "" && !slices.Equal(ports, its):
			conflict = fmt.Sprintf("Dataplane %s serves %s at %s, and the older Dataplane %s, which takes precedence, at %s: give both the same inbounds, or change the %s of one",
				dataplane.Name, service, portsText(its), oldest.Name, portsText(ports), kumav1alpha1.TagService)
		}
	}
	return ports, conflict
}

func portsServed(service string, dataplane *kumav1alpha1.Dataplane) []kumav1alpha1.Port {
	var all []kumav1alpha1.Port
	names, numbers := map[string]bool{}, map[int32]bool{}
	for i := range dataplane.Spec.Networking.Inbound {
		inbound := &dataplane.Spec.Networking.Inbound[i]
		if inbound.Tags[kumav1alpha1.TagService] != service || inbound.InForce() == kumav1alpha1.InboundIgnored || numbers[inbound.Port] {
			continue
		}
		name := inbound.Name
		if name == "" || names[name] {
			name = strconv.Itoa(int(inbound.Port))
		}
		names[name], numbers[inbound.Port] = true, true
		written := strings.ToLower(cmp.Or(inbound.Protocol, inbound.Tags[kumav1alpha1.TagProtocol]))
		all = append(all, kumav1alpha1.Port{
			Port: inbound.Port, Name: name, TargetPort: intstr.FromInt32(inbound.Port), AppProtocol: cmp.Or(protocols[written], "tcp"),
		})
	}
	slices.SortFunc(all, func(a, b kumav1alpha1.Port) int { return cmp.Compare(a.Port, b.Port) })
	return all
}

func portsText(ports []kumav1alpha1.Port) string {
	var all []string
	for _, port := range ports {
		text := fmt.Sprintf("port %d", port.Port)
		if port.Name != strconv.Itoa(int(port.Port)) {
			text += " " + port.Name
		}
		all = append(all, text+" ("+port.AppProtocol+")")
	}
	return strings.Join(all, ", ")
}

// compareAge orders objects by age, then by name.
func compareAge[T metav1.Object](a, b T) int {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(x.Compare(y.Time), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// IsOlder says whether an object takes precedence over another by age.
func IsOlder(a, b metav1.Object) bool { return compareAge(a, b) < 0 }
