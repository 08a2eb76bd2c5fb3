package crds

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(4)
	os.Exit(cluster.RunWith(m, cluster.Options{Profile: "hub"}))
}

// harbour is the test cluster and what these tests do with it.
type harbour struct {
	client.Client
	t   testing.TB
	cfg *rest.Config
}

func newHarbour(t testing.TB) *harbour {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cfg := rest.CopyConfig(cluster.Shared(t).Config())
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &harbour{Client: c, t: t, cfg: cfg}
}

// fresh returns a plural that no other CRD of the cluster has.
func (h *harbour) fresh(plural string) string {
	plural = strings.TrimSuffix(plural, "s") + rand.String(6) + "s"
	h.t.Cleanup(func() {
		h.Delete(context.Background(), makeCRD(plural).Obj())
	})
	return plural
}

type installed struct {
	t      testing.TB
	result Result
	err    error
}

func (h *harbour) install(crd *apiextensionsv1.CustomResourceDefinition, opts Options) installed {
	h.t.Helper()
	results, err := install(h.t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{crd}, opts)
	return installed{h.t, results[0], err}
}

func (i installed) is(outcome Outcome, message string) {
	i.t.Helper()
	if i.err != nil {
		i.t.Fatal(i.err)
	}
	if diff := cmp.Diff(Result{i.result.Name, outcome, message}, i.result); diff != "" {
		i.t.Errorf("-want +got:\n%s", diff)
	}
}

func (h *harbour) find(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, h.Get(ctx, client.ObjectKey{Name: name}, crd)
}

func (h *harbour) get(name string) *apiextensionsv1.CustomResourceDefinition {
	h.t.Helper()
	crd, err := h.find(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return crd
}

func (h *harbour) launch(plural, name string, finalizers ...string) *unstructured.Unstructured {
	h.t.Helper()
	boat := newBoat(plural, name)
	boat.SetFinalizers(finalizers)
	h.eventually("a "+plural+" to be accepted", func() bool {
		return h.Create(h.t.Context(), boat) == nil
	})
	return boat
}

func (h *harbour) boat(plural, name string) *unstructured.Unstructured {
	h.t.Helper()
	boat := newBoat(plural, name)
	if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(boat), boat); err != nil {
		h.t.Fatal(err)
	}
	return boat
}

func newBoat(plural, name string) *unstructured.Unstructured {
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	boat.SetGroupVersionKind(schema.GroupVersionKind{Group: "harbour.test", Version: "v1", Kind: kindOf(plural)})
	boat.SetName(name)
	return boat
}

func kindOf(plural string) string { return makeCRD(plural).Obj().Spec.Names.Kind }

// as returns a connection of a user who has been granted some verbs on CRDs.
func (h *harbour) as(t *testing.T, verbs ...string) *rest.Config {
	t.Helper()
	user := "sailor-" + rand.String(6)
	cfg := rest.CopyConfig(h.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	if len(verbs) == 0 {
		return cfg
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, Verbs: verbs}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := h.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Delete(context.Background(), obj) })
	}
	reader, err := client.New(cfg, client.Options{Scheme: h.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	h.eventually("the grant to take effect", func() bool {
		err := reader.Get(t.Context(), client.ObjectKey{Name: "none.harbour.test"}, &apiextensionsv1.CustomResourceDefinition{})
		return apierrors.IsNotFound(err)
	})
	return cfg
}

func (h *harbour) eventually(what string, is func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}
