// Package helm_test installs Helm releases into a cluster, and kills the process that does so.
package helm_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// A hub is a cluster in which nothing runs, so that objects stay as they are written.
func TestMain(m *testing.M) {
	cluster.Parallel(6) // they wait for the API server
	os.Exit(cluster.Run(m, cluster.Options{Profile: "hub", KeepNamespaces: true}))
}

// newHub is the cluster of these tests.
func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{t: t, cluster: cluster.Shared(t)}
	h.config = h.cluster.Config()
	h.config.QPS = -1
	h.Manager, h.Client = h.connect(h.config)
	return h
}

// hub is the cluster and what these tests do with it.
type hub struct {
	*release.Manager
	client.Client
	t       testing.TB
	config  *rest.Config
	cluster *cluster.Cluster
}

// in is the same cluster for a subtest.
func (h *hub) in(t testing.TB) *hub {
	same := *h
	same.t = t
	return &same
}

// connect makes a Manager, as a process that has just been started does.
func (h *hub) connect(config *rest.Config) (*release.Manager, client.Client) {
	h.t.Helper()
	manager, c, err := connect(config, logr.Discard())
	if err != nil {
		h.t.Fatal(err)
	}
	return manager, c
}

func connect(config *rest.Config, log logr.Logger) (*release.Manager, client.Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	manager, err := release.New(config, mapper, log)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	return manager, c, err
}

// owner is a cluster-scoped object that others can belong to.
func (h *hub) owner() *metav1.OwnerReference {
	h.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name(h.t)}}
	if err := h.Create(h.t.Context(), role); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = h.Delete(context.Background(), role) })
	return metav1.NewControllerRef(role, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
}

func (h *hub) install(spec release.Spec) {
	h.t.Helper()
	if err := h.Install(h.t.Context(), spec); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) render(spec release.Spec) []*unstructured.Unstructured {
	h.t.Helper()
	objects, err := h.Render(h.t.Context(), spec)
	if err != nil {
		h.t.Fatal(err)
	}
	return objects
}

func (h *hub) uninstall(spec release.Spec) {
	h.t.Helper()
	if err := h.Uninstall(h.t.Context(), spec.Namespace, spec.Name); err != nil {
		h.t.Fatal(err)
	}
}

// live is an object as it is now, or nil.
func (h *hub) live(object *unstructured.Unstructured) *unstructured.Unstructured {
	h.t.Helper()
	found, err := h.find(h.t.Context(), object)
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

func (h *hub) find(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	err := h.Get(ctx, client.ObjectKeyFromObject(object), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// has demands that all of the objects are there, or none.
func (h *hub) has(objects []*unstructured.Unstructured, want bool) {
	h.t.Helper()
	for _, object := range objects {
		if (h.live(object) != nil) != want {
			h.t.Errorf("%s is there: %t, want %t", describe(object), !want, want)
		}
	}
}

// records are the Secrets of a release.
func (h *hub) records(spec release.Spec) []metav1.PartialObjectMetadata {
	h.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
	err := h.List(h.t.Context(), list, client.InNamespace(spec.Namespace), client.MatchingLabels{"owner": "helm", "name": spec.Name})
	if err != nil {
		h.t.Fatal(err)
	}
	return list.Items
}

// isDeployed demands that the records say so of just this spec.
func (h *hub) isDeployed(spec release.Spec, version int) {
	h.t.Helper()
	want := release.State{
		Name: spec.Name, Namespace: spec.Namespace, Exists: true, Version: version, Status: "deployed",
		Fingerprint: spec.Fingerprint(), ChartVersion: cmp.Or(spec.ChartVersion, spec.Chart.Metadata.Version),
	}
	if diff := gocmp.Diff(want, release.StateOf(h.records(spec))); diff != "" {
		h.t.Errorf("state of the release (-want +got):\n%s", diff)
	}
}

// restoreAll restores each object of a release, and returns those that this changed.
func (h *hub) restoreAll(spec release.Spec, objects []*unstructured.Unstructured) []string {
	h.t.Helper()
	var changed []string
	for _, object := range objects {
		restored, err := h.Restore(h.t.Context(), spec, object)
		if err != nil {
			h.t.Fatal(err)
		}
		if restored {
			changed = append(changed, describe(object))
		}
	}
	return changed
}

// patch edits a live object as a user would.
func (h *hub) patch(object *unstructured.Unstructured, edit func(map[string]any)) {
	h.t.Helper()
	live := h.live(object)
	edit(live.Object)
	if err := h.Update(h.t.Context(), live, client.FieldOwner("somebody")); err != nil {
		h.t.Fatal(err)
	}
}

// gone waits until none of the objects is there any more.
func (h *hub) gone(objects []*unstructured.Unstructured) {
	h.t.Helper()
	for _, object := range objects {
		wait.Until(h.t, func(ctx context.Context) error {
			live, err := h.find(ctx, object)
			if err == nil && live != nil {
				err = fmt.Errorf("%s is still there", describe(object))
			}
			return err
		})
	}
}

func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// find one of the objects.
func find(t testing.TB, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			return object
		}
	}
	t.Fatalf("no %s is among the objects", kind)
	return nil
}

// istio loads one of Istio's charts.
func istio(t testing.TB, version, name string) *charts.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(filepath.Join(cluster.Charts(t), version, name))
	if err != nil {
		t.Fatal(err)
	}
	return &charts.Chart{Chart: loaded, Digest: version + "/" + name}
}

// istiod is a release of a control plane, in a namespace of its own.
func (h *hub) istiod(version string) release.Spec {
	h.t.Helper()
	namespace := h.cluster.Namespace(h.t)
	return release.Spec{
		Name: "istiod-canary", Namespace: namespace, Owner: h.owner(),
		Chart: istio(h.t, version, "istiod"), ChartVersion: version,
		Values: map[string]any{"revision": "canary", "global": map[string]any{"istioNamespace": namespace}},
	}
}
