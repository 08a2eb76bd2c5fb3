package usage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// Snapshot is who used what when it was taken.
type Snapshot struct{ ledger *ledger }

// Survey reads everything afresh from an API server, page by page. The reader must not be a cache, which has no pages.
func Survey(ctx context.Context, reader client.Reader) (*Snapshot, error) {
	l := newLedger()
	for _, kind := range []struct {
		name  string
		list  func() client.ObjectList
		only  fields.Selector
		enter func(runtime.Object)
	}{
		{kindNamespace, metadataListOf(kindNamespace), nil, func(o runtime.Object) { l.enterNamespace(o.(metav1.Object)) }},
		{kindPod, metadataListOf(kindPod), alive, func(o runtime.Object) { l.enterPod(o.(metav1.Object)) }},
		{
			v1.IstioRevisionTagKind, func() client.ObjectList { return &v1.IstioRevisionTagList{} }, nil,
			func(o runtime.Object) { l.enterTag(o.(*v1.IstioRevisionTag)) },
		},
	} {
		pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
			list := kind.list()
			return list, reader.List(ctx, list, &client.ListOptions{
				FieldSelector: kind.only, Limit: page.Limit, Continue: page.Continue, Raw: &page,
			})
		})
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			kind.enter(o)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list every %s to see what it uses: %w", kind.name, err)
		}
	}
	return &Snapshot{l}, nil
}

func metadataListOf(kind string) func() client.ObjectList {
	return func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		return list
	}
}

// Revision is who uses the revision of that name: by label, by annotation or as a tag.
func (s *Snapshot) Revision(name string) Usage { return s.ledger.usage(name, asRevision) }

// Tag is who uses the tag of that name: by label.
func (s *Snapshot) Tag(name string) Usage { return s.ledger.usage(name, asTag) }

// References are all that use the revision of that name.
func (s *Snapshot) References(name string) []Reference { return s.ledger.references(name, asRevision) }

// TagReferences are all that use the tag of that name.
func (s *Snapshot) TagReferences(name string) []Reference { return s.ledger.references(name, asTag) }
