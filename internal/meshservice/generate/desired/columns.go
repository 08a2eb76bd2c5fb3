package desired

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// maxColumnItems bounds the items of a column.
const maxColumnItems = 10

// SetColumns writes the lists of a status as text, with the zones of a MeshMultiZoneService.
func SetColumns(status *kumav1alpha1.ServiceStatus, zones []string) {
	var hostnames, vips []string
	for _, address := range status.Addresses {
		hostnames = append(hostnames, address.Hostname)
	}
	for _, vip := range status.VIPs {
		vips = append(vips, vip.IP)
	}
	status.Columns = kumav1alpha1.ServiceColumns{Hostnames: columnText(hostnames), VIPs: columnText(vips), Zones: columnText(zones)}
}

// PolicyColumns are the destinations of a policy as text.
func PolicyColumns(policy kumav1alpha1.Policy) kumav1alpha1.PolicyColumns {
	var to []string
	for _, entry := range policy.Entries() {
		switch ref := entry.TargetRef; {
		case ref.Name != "":
			to = append(to, ref.Name)
		case len(ref.Labels) > 0:
			to = append(to, labels.FormatLabels(ref.Labels))
		default:
			to = append(to, ref.Kind)
		}
	}
	return kumav1alpha1.PolicyColumns{To: columnText(to)}
}

// columnText lists each item once, in order.
func columnText(items []string) string {
	var all []string
	for _, item := range items {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	if more := len(all) - maxColumnItems; more > 0 {
		all = append(all[:maxColumnItems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ",")
}
