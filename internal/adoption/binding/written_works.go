package binding

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// writtenWorks remembers which bindings have the Works that they should have, so that a template is read when it, its binding or
// a Work has changed, and not with every event of a cluster.
type writtenWorks struct{ entries sync.Map }

type writtenState struct {
	state string
	from  Source
}

// stateOf is what the Works of a binding follow from, and what they are.
func stateOf(b *model.Binding, version string, works map[string]*workv1alpha1.Work) string {
	state := []string{version, fmt.Sprint(b.GetGeneration()), model.ClaimOf(b).String()}
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		w := works[cluster]
		state = append(state, fmt.Sprint(cluster, w.UID, w.Generation, w.DeletionTimestamp != nil))
	}
	return strings.Join(state, " ")
}

// lookup tells whether all Works of a binding are as they should be.
func (l *writtenWorks) lookup(b *model.Binding, version string, works map[string]*workv1alpha1.Work) (from Source, found bool) {
	known, ok := l.entries.Load(b.GetUID())
	if !ok || version == "" || known.(writtenState).state != stateOf(b, version, works) {
		return Source{}, false
	}
	return known.(writtenState).from, true
}

func (l *writtenWorks) store(b *model.Binding, version string, works map[string]*workv1alpha1.Work, from Source) {
	l.entries.Store(b.GetUID(), writtenState{stateOf(b, version, works), from})
}

func (l *writtenWorks) delete(binding types.UID) { l.entries.Delete(binding) }
