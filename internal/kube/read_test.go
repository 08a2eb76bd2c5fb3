package kube

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stubReader answers every request with an error, or with the same pods.
type stubReader struct {
	err  error
	pods []string
}

func (r stubReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func (r stubReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, name := range r.pods {
		pods := list.(*corev1.PodList)
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	return r.err
}

func TestGetIfExists(t *testing.T) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	for name, c := range map[string]struct {
		err    error
		key    client.ObjectKey
		object client.Object
		found  bool
		want   string
	}{
		"found":          {nil, client.ObjectKey{Name: "a"}, &corev1.Pod{}, true, ""},
		"missing":        {apierrors.NewNotFound(schema.GroupResource{}, "a"), client.ObjectKey{Name: "a"}, &corev1.Pod{}, false, ""},
		"a Go type":      {errors.New("no"), client.ObjectKey{Namespace: "shop", Name: "a"}, &corev1.Pod{}, false, "get Pod shop/a: no"},
		"cluster-scoped": {errors.New("no"), client.ObjectKey{Name: "shop"}, metadata, false, "get Namespace shop: no"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := GetIfExists(t.Context(), stubReader{err: c.err}, c.key, c.object)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != c.want || (got != nil) != c.found {
				t.Errorf("got %v and %q, want %q", got, text, c.want)
			}
		})
	}
}

func TestRequestsMatching(t *testing.T) {
	for name, c := range map[string]struct {
		reader stubReader
		want   []string
	}{
		"some match":     {stubReader{pods: []string{"cart", "fax", "cat"}}, []string{"shop/cart", "shop/cat"}},
		"none matches":   {stubReader{pods: []string{"fax"}}, nil},
		"a failing list": {stubReader{err: errors.New("no"), pods: []string{"cart"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, request := range RequestsMatching(t.Context(), c.reader, &corev1.PodList{}, func(p *corev1.Pod) bool { return p.Name[0] == 'c' }) {
				got = append(got, request.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
