package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// cacheDelay is how long a cache is given to receive a write.
const cacheDelay = 50 * time.Millisecond

// askAfter is after how long the API server is asked whether it has a write that the cache has not received: the hub may have been
// restored from a backup.
const askAfter = 5 * time.Second

type lastWrite struct {
	version string
	at      time.Time
}

// freshnessCheck knows the version of the last write of each Work. The event of a member can arrive before the hub's cache has the
// record of the write, and the object would be written again.
type freshnessCheck struct{ versions sync.Map }

// recordWrite records the version of a Work as the server returned it.
func (l *freshnessCheck) recordWrite(work *workv1alpha1.Work, now time.Time) {
	l.versions.Store(work.UID, lastWrite{work.ResourceVersion, now})
}

// isStale holds for a Work from a cache that has not received the last write.
func (l *freshnessCheck) isStale(ctx context.Context, server client.Reader, work *workv1alpha1.Work, now time.Time) (bool, error) {
	value, found := l.versions.Load(work.UID)
	if !found {
		return false, nil
	}
	last := value.(lastWrite)
	stale := isOlder(work.ResourceVersion, last.version)
	if stale && now.Sub(last.at) > askAfter {
		var live workv1alpha1.Work
		if err := server.Get(ctx, client.ObjectKeyFromObject(work), &live); client.IgnoreNotFound(err) != nil {
			return true, fmt.Errorf("get Work %s: %w", client.ObjectKeyFromObject(work), err)
		}
		// A Work that is gone stays so, and the cache will hear of that.
		if stale = live.UID != work.UID || !isOlder(live.ResourceVersion, last.version); stale {
			l.versions.Store(work.UID, lastWrite{last.version, now})
		}
	}
	if !stale {
		l.versions.Delete(work.UID)
	}
	return stale, nil
}

// isOlder is false for versions without an order.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
