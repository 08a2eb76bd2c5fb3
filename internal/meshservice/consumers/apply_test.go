package consumers

import (
	"context"
	"errors"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// A status of an earlier version keeps its consumers until the publisher knows the slices, however its watches lag.
func TestStatusIsEmptiedLast(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kumav1alpha1.AddToScheme(scheme), fairleadv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mesh := makeMesh(kumav1alpha1.ModeReachableBackendRefs)
	mesh.Status.Migration = &kumav1alpha1.MeshMigration{Intent: "one", BatchSize: 1}
	for _, name := range []string{"shop/Deployment/a", "shop/Deployment/b"} {
		c := kumav1alpha1.MigratedConsumer{Name: name, Switched: true}
		setState(&c, kumav1alpha1.ConsumerSwitched, epoch)
		mesh.Status.Migration.Consumers = append(mesh.Status.Migration.Consumers, c)
	}
	errApplied := errors.New("the status is written")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mesh).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return errApplied
		},
	}).Build()
	published := map[string]bool{}
	r := &reconciler{client: c, options: Options{Recorded: func(_ string, switched map[string]bool) bool { return maps.Equal(published, switched) }}}
	for _, step := range []struct {
		when   string
		knows  map[string]bool
		slices int
		want   error
	}{
		{"first", map[string]bool{}, 2, nil},
		{"while the publisher knows no slice", map[string]bool{}, 2, nil},
		{"while the publisher knows one slice", map[string]bool{"shop/Deployment/a": true}, 2, nil},
		{"when the publisher knows all slices", Switched(mesh), 2, errApplied},
	} {
		recorded, err := listSlices(t.Context(), c, mesh.Name)
		if err != nil {
			t.Fatal(err)
		}
		published = step.knows
		if err := r.moveRecord(t.Context(), mesh, recorded, epoch); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.when, err, step.want)
		}
		if now, err := listSlices(t.Context(), c, mesh.Name); err != nil || len(now) != step.slices {
			t.Errorf("%s: there are %d slices, %v", step.when, len(now), err)
		}
	}
}
