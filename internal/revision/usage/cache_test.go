package usage

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestPick(t *testing.T) {
	cases := map[string]struct{ from, want map[string]string }{
		"no labels":       {nil, nil},
		"nothing to keep": {labelled("app=cart"), nil},
		"one of several":  {labelled("app=cart,istio.io/rev=r1"), labelled("istio.io/rev=r1")},
		"all": {
			labelled("istio.io/rev=r1,istio-injection=enabled,sidecar.istio.io/inject=true"),
			labelled("istio.io/rev=r1,istio-injection=enabled,sidecar.istio.io/inject=true"),
		},
		// An empty value excludes the namespace, a missing label does not.
		"an empty value": {labelled("istio.io/rev=,app=cart"), labelled("istio.io/rev=")},
	}
	p := newPicker(keptLabels...)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, p.pick(c.from)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, p.pick(c.want)); diff != "" {
				t.Errorf("picked twice: %s", diff)
			}
		})
	}
}

func TestPickedMapsAreShared(t *testing.T) {
	strip := stripper()
	stripped := func(name, with, revision string) *metav1.PartialObjectMetadata {
		object, err := strip(makePod("shop", name, with, revision))
		if err != nil {
			t.Fatal(err)
		}
		return object.(*metav1.PartialObjectMetadata)
	}
	same := func(a, b map[string]string) bool {
		return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	}
	a, b := stripped("a", "istio.io/rev=r1,app=a", "r1"), stripped("b", "istio.io/rev=r1,app=b", "r1")
	if !same(a.Labels, b.Labels) || !same(a.Annotations, b.Annotations) {
		t.Error("two pods that say the same have a map each")
	}
	if other := stripped("c", "istio.io/rev=r2", "r2"); same(a.Labels, other.Labels) || same(a.Annotations, other.Annotations) {
		t.Error("two pods that do not say the same share a map")
	}

	p := newPicker(keptAnnotations...)
	for i := range 3 * maxShared {
		p.pick(map[string]string{v1.AnnotationRevision: fmt.Sprint(i)})
	}
	if len(p.made) > maxShared {
		t.Errorf("%d maps are remembered", len(p.made))
	}
}

func TestStripLeavesTombstones(t *testing.T) {
	gone := toolscache.DeletedFinalStateUnknown{Key: "shop/cart", Obj: makePod("shop", "cart", "", "")}
	if got, err := stripper()(gone); err != nil || !cmp.Equal(got, gone) {
		t.Errorf("it became %v, %v", got, err)
	}
}

// The index has no strings of its own: each new version of a pod replaces those of the one before, which can then be
// freed together.
func TestStringsAreThoseOfTheCache(t *testing.T) {
	tracker := newTracker()
	pods := tracker.handlers()[kindPod]
	version := func() *metav1.PartialObjectMetadata {
		return makePod("shop", fmt.Sprintf("cart-%d", 1), "", fmt.Sprintf("r%d", 1))
	}
	first, second := version(), version()
	pods.OnAdd(first, false)
	pods.OnUpdate(first, second)
	for name, says := range tracker.index.namespaces["shop"].pods {
		if unsafe.StringData(name) != unsafe.StringData(second.Name) {
			t.Error("the name is another string than the cached pod's")
		}
		if unsafe.StringData(says.injected) != unsafe.StringData(second.Annotations[v1.AnnotationRevision]) {
			t.Error("the revision is another string than the cached pod's")
		}
	}
}
