package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// ledger has which bindings have the Works that they should have, so that a resource is read when it, its binding or a Work
// has changed, and not whenever there is news of a cluster.
type ledger struct{ entries sync.Map }

type entry struct {
	state string
	// wrong is what the resource says that means nothing.
	wrong error
}

// stateOf is what the Works of a binding follow from, and what they are.
func stateOf(b *binding, version string, works map[string]*workv1alpha1.Work) string {
	state := []string{version, fmt.Sprint(b.GetGeneration()), claimOf(b).String()}
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		w := works[cluster]
		state = append(state, fmt.Sprint(cluster, w.UID, w.Generation, w.DeletionTimestamp != nil))
	}
	return strings.Join(state, " ")
}

// find tells whether all Works of a binding are as they should be.
func (l *ledger) find(b *binding, version string, works map[string]*workv1alpha1.Work) (wrong error, found bool) {
	known, ok := l.entries.Load(b.GetUID())
	if !ok || version == "" || known.(entry).state != stateOf(b, version, works) {
		return nil, false
	}
	return known.(entry).wrong, true
}

func (l *ledger) enter(b *binding, version string, works map[string]*workv1alpha1.Work, wrong error) {
	l.entries.Store(b.GetUID(), entry{stateOf(b, version, works), wrong})
}

func (l *ledger) strike(binding types.UID) { l.entries.Delete(binding) }
