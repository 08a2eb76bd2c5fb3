package usage

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// List makes a Tracker of one moment: it reads namespaces, pods, workloads and tags from an API server, page by page. The reader
// must not be a cache, which has no pages. All but tags are passed to the observers as well.
func List(ctx context.Context, reader client.Reader, also ...Observer) (*Tracker, error) {
	t := newTracker()
	err := ForEach(ctx, reader, metadataList(kindNamespace), client.ListOptions{}, func(o runtime.Object) {
		t.index.observeNamespace(o.(metav1.Object))
		for _, v := range also {
			v.ObserveNamespace(o.(metav1.Object))
		}
	})
	if err != nil {
		return nil, err
	}
	err = ForEach(ctx, reader, metadataList(kindPod), client.ListOptions{FieldSelector: notTerminated}, func(o runtime.Object) {
		t.index.observePod(o.(metav1.Object))
		for _, v := range also {
			v.ObservePod(o.(metav1.Object))
		}
	})
	if err != nil {
		return nil, err
	}
	for _, k := range templateKinds {
		err = ForEach(ctx, reader, k.list, client.ListOptions{LabelSelector: k.only}, func(o runtime.Object) {
			t.index.observeWorkload(k.kind, o.(metav1.Object))
			for _, v := range also {
				v.ObserveWorkload(o.(client.Object))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	err = ForEach(ctx, reader, &v1.IstioRevisionTagList{}, client.ListOptions{}, func(o runtime.Object) {
		t.index.observeTag(o.(*v1.IstioRevisionTag))
	})
	return t, err
}

// Observer is passed the metadata of all namespaces, and of all pods that have not terminated, and all workloads: Deployments,
// Jobs and what else has a pod template.
type Observer interface {
	ObserveNamespace(metav1.Object)
	ObservePod(metav1.Object)
	ObserveWorkload(client.Object)
}

func metadataList(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}

// PodsIn lists the metadata of all pods of a namespace that have not terminated.
func PodsIn(ctx context.Context, reader client.Reader, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := metadataList(kindPod)
	err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: notTerminated})
	if err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// ForEach visits every object of a kind, page by page.
func ForEach(ctx context.Context, reader client.Reader, kind client.ObjectList, only client.ListOptions, visit func(runtime.Object)) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		list := kind.DeepCopyObject().(client.ObjectList)
		only.Limit, only.Continue, only.Raw = page.Limit, page.Continue, &page
		return list, reader.List(ctx, list, &only)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		visit(o)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list every %s to track usage: %w", kindOf(kind), err)
	}
	return nil
}

func kindOf(list client.ObjectList) string {
	kind := cmp.Or(list.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(list).Elem().Name())
	return strings.TrimSuffix(kind, "List")
}
