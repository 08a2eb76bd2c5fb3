package adoption

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// catchUp is how long a cache is given to hear of what was written.
const catchUp = 50 * time.Millisecond

// latest knows the version of each object that was written last. A cluster can tell of its objects before the hub's cache
// has heard what was remembered of them, and they would be written again.
type latest struct{ versions sync.Map }

// wrote an object, as the server gave it back.
func (l *latest) wrote(object client.Object) {
	l.versions.Store(object.GetUID(), object.GetResourceVersion())
}

// behind holds for an object from a cache that has yet to hear of the last write.
func (l *latest) behind(object client.Object) bool {
	version, found := l.versions.Load(object.GetUID())
	if !found {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version.(string))
	if err != nil || order >= 0 {
		l.versions.Delete(object.GetUID())
		return false
	}
	return true
}
