// Package crds_test installs CRDs into a cluster and migrates what is stored there.
package crds_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestMain(m *testing.M) {
	cluster.Parallel(4)
	os.Exit(cluster.Run(m, cluster.Options{Profile: "hub"}))
}

// hub is the test cluster and what these tests do with it.
type hub struct {
	client.Client
	t   testing.TB
	cfg *rest.Config
}

func newHub(t testing.TB) *hub {
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
	return &hub{Client: c, t: t, cfg: cfg}
}

// fresh returns a plural that no other CRD of the cluster has.
func (h *hub) fresh(plural string) string {
	plural = strings.TrimSuffix(plural, "s") + rand.String(6) + "s"
	h.t.Cleanup(func() {
		h.Delete(context.Background(), makeCRD(plural).Obj())
	})
	return plural
}

type installed struct {
	t      testing.TB
	result crds.Result
	err    error
}

func (h *hub) install(crd *apiextensionsv1.CustomResourceDefinition, opts crds.Options) installed {
	h.t.Helper()
	results, err := install(h.t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{crd}, opts)
	return installed{h.t, results[0], err}
}

func install(ctx context.Context, cfg *rest.Config, wanted []*apiextensionsv1.CustomResourceDefinition, opts crds.Options) ([]crds.Result, error) {
	opts.CRDs = wanted
	if opts.Timeout == 0 {
		opts.Timeout = wait.Deadline()
	}
	return crds.Install(ctx, cfg, opts)
}

func (i installed) is(outcome crds.Outcome, message string) {
	i.t.Helper()
	if i.err != nil {
		i.t.Fatal(i.err)
	}
	if diff := cmp.Diff(crds.Result{Name: i.result.Name, Outcome: outcome, Message: message}, i.result); diff != "" {
		i.t.Errorf("-want +got:\n%s", diff)
	}
}

func (h *hub) find(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, h.Get(ctx, client.ObjectKey{Name: name}, crd)
}

func (h *hub) get(name string) *apiextensionsv1.CustomResourceDefinition {
	h.t.Helper()
	crd, err := h.find(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return crd
}

func (h *hub) launch(plural, name string, finalizers ...string) *unstructured.Unstructured {
	h.t.Helper()
	boat := newBoat(plural, name)
	boat.SetFinalizers(finalizers)
	h.eventually("a "+plural+" to be accepted", func() bool {
		return h.Create(h.t.Context(), boat) == nil
	})
	return boat
}

func (h *hub) boat(plural, name string) *unstructured.Unstructured {
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
func (h *hub) as(t *testing.T, verbs ...string) *rest.Config {
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

func (h *hub) eventually(what string, is func() bool) {
	h.t.Helper()
	wait.Until(h.t, func(context.Context) error {
		if !is() {
			return fmt.Errorf("waited for %s", what)
		}
		return nil
	})
}

// established is nil for a CRD that the API server serves.
func established(crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("CRD %s is not established: %v", crd.Name, crd.Status.Conditions)
}

// same tells whether the cluster has the schema that is wanted, under its version.
func same(live, want *apiextensionsv1.CustomResourceDefinition) bool {
	wanted := want.Spec.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(wanted)
	wanted.Conversion = live.Spec.Conversion
	return live.Annotations[crds.SchemaVersionAnnotation] == want.Annotations[crds.SchemaVersionAnnotation] &&
		equality.Semantic.DeepEqual(&live.Spec, wanted)
}
