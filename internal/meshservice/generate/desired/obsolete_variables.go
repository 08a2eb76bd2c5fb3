package desired

import (
	"slices"
	"strings"
)

var obsoleteOptions = []string{"GENERATE_MESH_SERVICES", "SKIP_PERSISTED_VIPS"}

// ObsoleteVariables returns the obsolete environment variables that are set, sorted.
func ObsoleteVariables(environ []string) []string {
	var all []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		for _, old := range obsoleteOptions {
			if name == old || strings.HasPrefix(name, "KUMA_") && strings.HasSuffix(name, "_"+old) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}
