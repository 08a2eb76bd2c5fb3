package adoption

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// bell wakes a controller for an object of which the hub has no news.
type bell chan event.GenericEvent

func newBell() bell { return make(bell, 1024) }

func (b bell) ring(key client.ObjectKey) {
	b <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
}

// ringFor rings for all Works that are meant.
func (b bell) ringFor(ctx context.Context, works client.Reader, meant ...client.ListOption) {
	var list workv1alpha1.WorkList
	if err := works.List(ctx, &list, append(meant, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Works that there is news of")
		return
	}
	for i := range list.Items {
		b.ring(client.ObjectKeyFromObject(&list.Items[i]))
	}
}
