package upkeep

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/revision/release"
)

// refusals are what the API server has last said of releases that it would not have. Without them, every event would be
// a reason to ask it again.
type refusals struct {
	mu sync.Mutex
	of map[types.NamespacedName]refusal
}

type refusal struct {
	fingerprint string
	err         error
}

// note how an attempt to install a release has ended.
func (r *refusals) note(spec release.Spec, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}
	if !release.Refused(err) {
		delete(r.of, key)
		return
	}
	r.of[key] = refusal{spec.Fingerprint(), err}
}

// recall why just this was refused before, or nil.
func (r *refusals) recall(spec release.Spec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.of[types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}]
	if !ok || last.fingerprint != spec.Fingerprint() {
		return nil
	}
	return last.err
}
