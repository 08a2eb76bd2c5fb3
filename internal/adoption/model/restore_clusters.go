package model

import (
	"slices"
	"strings"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// AnnotationRestoreClusters on a binding has the clusters, separated by commas, that its template goes to no longer because the
// policy of the template that required it there is aborted: the original of its object is restored there.
const AnnotationRestoreClusters = "fairlead.dev/undo-clusters"

// IsRestoredIn tells whether the original of the object of a binding is restored in a cluster that its template goes to no longer.
func IsRestoredIn(b *Binding, cluster string) bool {
	return slices.Contains(restoreClusters(b), cluster)
}

// RestoreIn has the original restored in those of the clusters that the template of a binding goes to no longer.
func RestoreIn(b *Binding, clusters ...workv1alpha2.TargetCluster) {
	all := restoreClusters(b)
	for _, c := range clusters {
		all = append(all, c.Name)
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return name == "" || HasCluster(Targets(b), name)
	})
	slices.Sort(all)
	ours := map[string]string{}
	if all = slices.Compact(all); len(all) > 0 {
		ours[AnnotationRestoreClusters] = strings.Join(all, ",")
	}
	b.SetAnnotations(MergeKeys(b.GetAnnotations(), []string{AnnotationRestoreClusters}, ours))
}

func restoreClusters(b *Binding) []string {
	return strings.Split(b.GetAnnotations()[AnnotationRestoreClusters], ",")
}
