package work

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
)

// comparisons knows which Works were compared with which versions of their objects, so that the event of the operator's own write to
// a member has nothing read again.
type comparisons struct{ entries sync.Map }

// comparison is a Work that is applied, and its object, as they were last compared.
type comparison struct {
	work, object string
	kind         schema.GroupVersionKind
	key          client.ObjectKey
}

// watchedObjects are the objects of a member as its last events had them.
type watchedObjects interface {
	WatchedVersion(context.Context, schema.GroupVersionKind, client.ObjectKey) string
}

// record a Work with the status that was written, and its object as the member returned it.
func (c *comparisons) record(work *workv1alpha1.Work, object *unstructured.Unstructured) {
	c.entries.Store(work.UID, comparison{
		work: work.ResourceVersion, object: member.VersionOf(object), kind: object.GroupVersionKind(), key: client.ObjectKeyFromObject(object),
	})
}

// isCurrent tells whether neither a Work nor its object has changed since they were compared.
func (c *comparisons) isCurrent(ctx context.Context, work *workv1alpha1.Work, objects watchedObjects) bool {
	known, found := c.entries.Load(work.UID)
	if !found {
		return false
	}
	last := known.(comparison)
	return last.work == work.ResourceVersion && last.object == objects.WatchedVersion(ctx, last.kind, last.key)
}

func (c *comparisons) forget(work types.UID) { c.entries.Delete(work) }
