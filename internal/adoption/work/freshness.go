package work

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheDelay is how long a cache is given to receive a write.
const cacheDelay = 50 * time.Millisecond

// forgetAfter is after how long a cache that has not received a write is used anyway: the hub may have been restored from a backup.
const forgetAfter = 5 * time.Second

type lastWrite struct {
	version string
	at      time.Time
}

// freshnessCheck knows the version of the last write of each object. The event of a member can arrive before the hub's cache has the
// record of the write, and the object would be written again.
type freshnessCheck struct{ versions sync.Map }

// recordWrite records the version of an object as the server returned it.
func (l *freshnessCheck) recordWrite(object client.Object) {
	l.versions.Store(object.GetUID(), lastWrite{object.GetResourceVersion(), time.Now()})
}

// isStale holds for an object from a cache that has not received the last write.
func (l *freshnessCheck) isStale(object client.Object) bool {
	last, found := l.versions.Load(object.GetUID())
	if !found {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.(lastWrite).version)
	if err != nil || order >= 0 || time.Since(last.(lastWrite).at) > forgetAfter {
		l.versions.Delete(object.GetUID())
		return false
	}
	return true
}
