package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

var installed sync.Once

// shared is the cluster of all tests, with the CRDs of the mesh, which the API server serves a moment after they are established.
func shared(t testing.TB) *cluster.Cluster {
	t.Helper()
	c := cluster.Shared(t)
	installed.Do(func() {
		if _, err := crds.Install(t.Context(), c.Config(), crds.Options{Log: logr.Discard(), Timeout: wait.Deadline()}); err != nil {
			t.Fatal(err)
		}
		admin, err := client.New(c.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := crds.All()
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range all {
			for _, group := range []schema.GroupVersion{kumav1alpha1.GroupVersion, fairleadv1alpha1.GroupVersion} {
				if crd.Spec.Group != group.Group {
					continue
				}
				list := &metav1.PartialObjectMetadataList{}
				list.SetGroupVersionKind(group.WithKind(crd.Spec.Names.ListKind))
				wait.Until(t, func(ctx context.Context) error { return admin.List(ctx, list, client.Limit(1)) })
			}
		}
	})
	return c
}

// world is a mesh in a zone of its own, with a namespace for what runs and one of the system's.
type world struct {
	client.Client
	options   generate.Options
	config    *rest.Config
	mesh      string
	namespace string
	stop      func()
}

func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(clientgoscheme.AddToScheme(s), kumav1alpha1.AddToScheme(s), fairleadv1alpha1.AddToScheme(s))
}

// begin makes a mesh of a mode, and starts the generate controllers.
func begin(t *testing.T, environment string, mode kumav1alpha1.Mode, how ...func(*generate.Options)) *world {
	t.Helper()
	w := prepare(t, environment, mode, how...)
	w.start(t)
	return w
}

// prepare is begin without the controllers.
func prepare(t testing.TB, environment string, mode kumav1alpha1.Mode, how ...func(*generate.Options)) *world {
	t.Helper()
	c := shared(t)
	s, err := scheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(c.Config(), client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Client: admin, config: c.Config(), mesh: cluster.Name(t), namespace: c.Namespace(t)}
	w.options = generate.Options{ZoneInfo: desired.ZoneInfo{Environment: environment, Zone: "east", SystemNamespace: c.Namespace(t)}, Grace: time.Hour}
	for _, h := range how {
		h(&w.options)
	}
	w.label(t, map[string]string{kumav1alpha1.LabelSidecarInjection: "enabled", kumav1alpha1.LabelMesh: w.mesh})
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: w.mesh}}
	if mode != "" {
		mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: mode}
	}
	w.create(t, mesh)
	t.Cleanup(func() { w.forget(t) })
	return w
}

// forget removes what would keep the controllers of other tests busy.
func (w *world) forget(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: w.mesh}}
	errs := []error{client.IgnoreNotFound(w.Delete(ctx, mesh))}
	for _, namespace := range []string{w.namespace, w.options.SystemNamespace} {
		for _, kind := range []client.Object{
			&corev1.Service{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &kumav1alpha1.Dataplane{}, &kumav1alpha1.MeshService{},
			&kumav1alpha1.MeshMultiZoneService{}, &kumav1alpha1.HostnameGenerator{},
		} {
			errs = append(errs, w.DeleteAllOf(ctx, kind, client.InNamespace(namespace)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// start runs the generate controllers until the test ends, or stop is called.
func (w *world) start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, w.config, w.options) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(w.stop)
}

// run is the generate controllers in a process like the operator's.
func run(ctx context.Context, restConfig *rest.Config, options generate.Options) error {
	s, err := scheme()
	if err != nil {
		return err
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = -1
	cacheOptions := generate.CacheOptions(options.ZoneInfo)
	cacheOptions.ReaderFailOnMissingInformer = true
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: s, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cacheOptions,
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	if err := generate.Setup(mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (w *world) create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// label the namespace of what runs.
func (w *world) label(t testing.TB, labels map[string]string) {
	t.Helper()
	w.edit(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, func(o client.Object) { o.SetLabels(labels) })
}

// edit an object.
func (w *world) edit(t testing.TB, object client.Object, how func(client.Object)) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		how(object)
		return w.Update(ctx, object)
	})
}

// turn the mesh to a mode.
func (w *world) turn(t testing.TB, mode kumav1alpha1.Mode) {
	t.Helper()
	w.edit(t, &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: w.mesh}}, func(o client.Object) {
		o.(*kumav1alpha1.Mesh).Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: mode}
	})
}

// services are the names of the MeshServices in a namespace.
func (w *world) services(ctx context.Context, namespace string) ([]string, error) {
	var list kumav1alpha1.MeshServiceList
	if err := w.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// become waits until there are exactly these MeshServices.
func (w *world) become(t testing.TB, namespace string, want ...string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		names, err := w.services(ctx, namespace)
		if err == nil && !slices.Equal(names, want) {
			err = fmt.Errorf("there are %v, want %v", names, want)
		}
		return err
	})
}

// service waits for a MeshService that is as it should be.
func (w *world) service(t testing.TB, namespace, name string, is func(*kumav1alpha1.MeshService) error) *kumav1alpha1.MeshService {
	t.Helper()
	var service kumav1alpha1.MeshService
	wait.Until(t, func(ctx context.Context) error {
		service = kumav1alpha1.MeshService{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service); err != nil {
			return err
		}
		return is(&service)
	})
	return &service
}

// meshSays waits until the mesh says something.
func (w *world) meshSays(t testing.TB, mode kumav1alpha1.Mode, kind, reason string, fragments ...string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var mesh kumav1alpha1.Mesh
		if err := w.Get(ctx, client.ObjectKey{Name: w.mesh}, &mesh); err != nil {
			return err
		}
		if mesh.Status.Mode != mode || mesh.Status.ObservedGeneration != mesh.Generation {
			return fmt.Errorf("its status is %+v", mesh.Status)
		}
		return harness.CheckCondition(mesh.Status.Conditions, kind, "", reason, fragments...)
	})
}

// reported waits for an event about an object.
func (w *world) reported(t testing.TB, namespace, kind, name, reason string) string {
	t.Helper()
	note := ""
	wait.Until(t, func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := w.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == kind && e.Regarding.Name == name && e.Reason == reason {
				note = e.Note
				return nil
			}
		}
		return fmt.Errorf("nobody told %s of %s %s", reason, kind, name)
	})
	return note
}
