package kube

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// GetIfExists reads an object into the given one; the result is nil if the object does not exist.
func GetIfExists[T client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, object T) (T, error) {
	var none T
	kind := cmp.Or(object.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(object).Elem().Name())
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("get %s %s: %w", kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return object, nil
}

// RequestsMatching are the requests for the objects in a cache that match. A list that fails is logged: event handlers have
// no way to retry.
func RequestsMatching[T client.Object](
	ctx context.Context, cache client.Reader, list client.ObjectList, match func(T) bool, options ...client.ListOption,
) []reconcile.Request {
	if err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "list objects to enqueue", "list", reflect.TypeOf(list).Elem().Name())
		return nil
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if object := item.(T); match(object) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return nil
	})
	return requests
}
