package consumers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A switched consumer counts in the status once a slice records it: xds takes from slices which consumers are switched.
func TestSlicesAreWrittenFirst(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kumav1alpha1.AddToScheme(scheme), fairleadv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mesh := makeMesh(kumav1alpha1.ModeReachableBackendRefs)
	switched := kumav1alpha1.MigratedConsumer{Name: "shop/Deployment/a", Switched: true}
	setState(&switched, kumav1alpha1.ConsumerSwitched, epoch)
	d := Decision{
		Record: &kumav1alpha1.MeshMigration{Intent: "one", BatchSize: 1, Consumers: []kumav1alpha1.MigratedConsumer{switched}},
		Condition: &metav1.Condition{
			Type: kumav1alpha1.ConditionConsumersSwitched, Status: metav1.ConditionFalse, Reason: kumav1alpha1.ReasonSwitching, Message: "switching",
		},
	}
	errApplied, errRefused := errors.New("the status is written"), errors.New("the slice is refused")
	for _, refused := range []error{nil, errRefused} {
		var writes []string
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mesh.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				writes = append(writes, "slice")
				return refused
			},
			SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
				writes = append(writes, "status")
				return errApplied
			},
		}).Build()
		_, err := (&reconciler{client: c}).apply(t.Context(), mesh.DeepCopy(), nil, d, epoch)
		want, wantErr := []string{"slice", "status"}, errApplied
		if refused != nil {
			want, wantErr = []string{"slice"}, refused
		}
		if !errors.Is(err, wantErr) || !slices.Equal(writes, want) {
			t.Errorf("apply writes %q and returns %v, want %q and %v", writes, err, want, wantErr)
		}
	}
}
