package successor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Port is a port of a service. A sectionName refers to it by its name, which is the number where the Service gives it none.
type Port struct {
	Number uint32
	Name   string
}

// Ports returns the ports of a service in all zones, by its name and namespace; none if the service is not known. The
// namespace is empty in universal.
type Ports func(name, namespace string) []Port

func (p Ports) of(name, namespace string) []Port {
	if p == nil {
		return nil
	}
	return p(name, namespace)
}

// namesOf returns the names that a port has, sorted: more than one where zones differ.
func namesOf(ports []Port, number uint32) []string {
	var names []string
	for _, p := range ports {
		if p.Number == number {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// onlyNumber returns the number of the port of a service that has one port only, and zero otherwise.
func onlyNumber(ports []Port) uint32 {
	if len(ports) == 0 || slices.ContainsFunc(ports, func(p Port) bool { return p.Number != ports[0].Number }) {
		return 0
	}
	return ports[0].Number
}

// PortsText lists ports by name, with the number where the name is another one.
func PortsText(ports []Port) string {
	var all []string
	for _, p := range ports {
		text := p.Name
		if text != strconv.Itoa(int(p.Number)) {
			text = fmt.Sprintf("%s (port %d)", p.Name, p.Number)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
