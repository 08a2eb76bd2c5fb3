package installer

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// namespaces is a cache of them, by name.
type namespaces struct {
	cache.Cache
	uids map[string]types.UID
}

func (n namespaces) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	uid, found := n.uids[key.Name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	object.SetUID(uid)
	return nil
}

// The namespaces that a record replaces are trusted only if its own namespace is, and only as long as no other has their name.
func TestWithReplaced(t *testing.T) {
	record := func(namespace, replaces, uid string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Labels: map[string]string{v1.LabelReplacesPrefix + replaces: uid},
		}}
	}
	records := []metav1.PartialObjectMetadata{
		record("second", "first", "1"), record("tenant", "accomplice", "7"), record("third", "second", "2"),
		record("third", "of-an-earlier-version", ""), record("third", "created-again", "3"), record("third", "gone", "4"), record("third", "forgotten", ""),
	}
	o := &Objects{cache: namespaces{uids: map[string]types.UID{
		"first": "1", "second": "2", "accomplice": "7", "of-an-earlier-version": "8", "created-again": "9",
	}}}
	got, err := o.withReplaced(t.Context(), sets.New("third"), records)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first", "of-an-earlier-version", "second", "third"}, sets.List(got)); diff != "" {
		t.Errorf("trusted namespaces: (-want +got)\n%s", diff)
	}
}
