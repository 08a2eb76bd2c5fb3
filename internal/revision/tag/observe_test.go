package tag

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// objectCache is a cache of the objects of a client.
type objectCache struct {
	cache.Cache
	client client.Reader
}

func (c *objectCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, nil
}

func (c *objectCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.client.Get(ctx, key, object, options...)
}

func (c *objectCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.client.List(ctx, list, options...)
}

// An uninstall may be interrupted when the webhook of a tag is deleted and its record is not. The revision of that namespace may be gone
// as well by then.
func TestUninstallOfATagGoesOn(t *testing.T) {
	record := func(namespace string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "sh.helm.release.v1.stable-revisiontag.v1",
			Labels: map[string]string{"owner": "helm", "name": "stable-revisiontag", "version": "1", "status": "uninstalling"},
		}}
	}
	for name, c := range map[string]struct {
		namespace string
		want      []string
	}{
		"of the namespace that the tag reports": {"former", []string{"former"}},
		"of other namespaces":                   {"elsewhere", nil},
		"of a tag that never led anywhere":      {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record("former"), record("tenant")).Build()
			objects, err := installer.NewObjects(t.Context(), &objectCache{client: hub}, hub, meta.NewDefaultRESTMapper(nil))
			if err != nil {
				t.Fatal(err)
			}
			r := &reconciler{installer.Tools{Client: hub, Objects: objects, Releases: installer.NewReleaseClient(objects, &release.Manager{})}}
			o := Observed{Tag: &v1.IstioRevisionTag{
				ObjectMeta: metav1.ObjectMeta{Name: "stable", DeletionTimestamp: ptr.To(metav1.Unix(1, 0)), Finalizers: []string{"example.org/held"}},
				Status:     v1.IstioRevisionTagStatus{IstiodNamespace: c.namespace},
			}}
			if err := r.observeRelease(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, state := range o.ObsoleteReleases {
				got = append(got, state.Namespace)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("uninstalled in (-want +got)\n%s", diff)
			}
		})
	}
}
