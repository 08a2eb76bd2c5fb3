package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/operator"
)

// plot is a story that always ends in the same way.
type plot struct {
	intent consumers.Intent
	// record is what the story begins with.
	record  *kumav1alpha1.MeshMigration
	refuses string
	// reason is that of the condition in the end.
	reason string
}

// TestConsumersDisturbed: the consumers controller dies, or is refused, at some of its writes, and in full at every one. That its decisions
// survive a crash after every write, the tests of package switching show.
func TestConsumersDisturbed(t *testing.T) {
	switched := func(names ...string) *kumav1alpha1.MeshMigration {
		record := &kumav1alpha1.MeshMigration{Intent: "before", BatchSize: 1}
		for _, name := range names {
			record.Consumers = append(record.Consumers, kumav1alpha1.MigratedConsumer{
				Name: "shop/Deployment/" + name, State: kumav1alpha1.ConsumerSwitched, Switched: true,
			})
		}
		return record
	}
	plots := map[string]plot{
		"switch":                {intent: consumers.Intent{ID: "one", BatchSize: 2}, reason: kumav1alpha1.ReasonSwitched},
		"refuse":                {intent: consumers.Intent{ID: "one", BatchSize: 1}, refuses: "pay-0", reason: kumav1alpha1.ReasonFailed},
		"moved from the status": {intent: consumers.Intent{ID: "before", BatchSize: 1}, record: switched("cart", "pay", "web"), reason: kumav1alpha1.ReasonSwitched},
		"revert":                {intent: consumers.Intent{ID: "two", BatchSize: 2, Revert: true}, record: switched("cart", "pay", "web"), reason: kumav1alpha1.ReasonReverted},
	}
	c := shared(t)
	scheme, err := operator.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(c.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range plots {
		t.Run(name, func(t *testing.T) {
			n := 0
			faults.DisturbEveryWrite(t, faults.Scenario{
				Config: c.Config(), Pick: faults.Sample(5, func(faults.Request) bool { return false }),
				Setup: func(t testing.TB) faults.World {
					n++
					return p.tell(t, admin, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), n))
				},
			}, append(faults.Kills(), faults.Conflict())...)
		})
	}
}

// tell is one telling of the story, with a mesh of its own.
func (p plot) tell(t testing.TB, admin client.Client, name string) faults.World {
	t.Helper()
	text, err := p.intent.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	mesh := &kumav1alpha1.Mesh{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{kumav1alpha1.AnnotationMigrate: text}},
		Spec:       kumav1alpha1.MeshSpec{MeshServices: &kumav1alpha1.MeshServices{Mode: kumav1alpha1.ModeReachableBackendRefs}},
	}
	if err := admin.Create(t.Context(), mesh); err != nil {
		t.Fatal(err)
	}
	mesh.Status.Mode, mesh.Status.ObservedGeneration, mesh.Status.Migration = mesh.Mode(), mesh.Generation, p.record.DeepCopy()
	mesh.Status.MeshServices = &kumav1alpha1.MeshServiceCount{Total: 1}
	meta.SetStatusCondition(&mesh.Status.Conditions, metav1.Condition{
		Type: kumav1alpha1.ConditionGenerated, Status: metav1.ConditionTrue, Reason: kumav1alpha1.ReasonGenerated, ObservedGeneration: mesh.Generation,
	})
	if err := admin.Status().Update(t.Context(), mesh); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(mesh)
	return faults.World{
		Run: func(ctx context.Context, config *rest.Config) error { return p.operate(ctx, config, name) },
		Settled: func(ctx context.Context) error {
			var now kumav1alpha1.Mesh
			if err := admin.Get(ctx, key, &now); err != nil {
				return err
			}
			c := meta.FindStatusCondition(now.Status.Conditions, kumav1alpha1.ConditionConsumersSwitched)
			// What an earlier version has written into the record goes by a second patch, after that of the condition.
			left := now.Status.Migration != nil && (p.reason == kumav1alpha1.ReasonReverted || len(now.Status.Migration.Consumers) > 0)
			if c == nil || c.Reason != p.reason || left {
				return fmt.Errorf("the mesh says %+v", now.Status)
			}
			return nil
		},
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			var now kumav1alpha1.Mesh
			if err := admin.Get(ctx, key, &now); err != nil {
				return nil, err
			}
			if now.Status.Migration != nil && len(now.Status.Migration.Consumers) > 0 {
				return nil, fmt.Errorf("the status of the Mesh has the consumers: %+v", now.Status.Migration)
			}
			recorded, err := consumers.ReadRecord(ctx, admin, &now)
			return ending(recorded), err
		},
		Teardown: func() {
			mine := client.MatchingLabels{kumav1alpha1.LabelMesh: mesh.Name}
			if err := errors.Join(admin.Delete(context.Background(), mesh), admin.DeleteAllOf(context.Background(), &fairleadv1alpha1.MeshConsumerSlice{}, mine)); err != nil {
				t.Error(err)
			}
		},
	}
}

// operate is an operator that does nothing but to switch consumers over.
func (p plot) operate(ctx context.Context, cfg *rest.Config, mesh string) error {
	scheme, err := operator.NewScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	f := newFleet(mesh, p.refuses, "cart", "pay", "web")
	informer, err := mgr.GetCache().GetInformer(ctx, &kumav1alpha1.Mesh{})
	if err != nil {
		return err
	}
	slices, err := mgr.GetCache().GetInformer(ctx, &fairleadv1alpha1.MeshConsumerSlice{})
	if err != nil {
		return err
	}
	// Both informers are heard, each in its own time: what is read last is followed last.
	var reading sync.Mutex
	heard := func(any) {
		reading.Lock()
		defer reading.Unlock()
		m := &kumav1alpha1.Mesh{}
		if err := mgr.GetCache().Get(ctx, client.ObjectKey{Name: mesh}, m); err != nil {
			return
		}
		if recorded, err := consumers.ReadRecord(ctx, mgr.GetCache(), m); err == nil {
			f.follow(recorded)
		}
	}
	for _, one := range []cache.Informer{informer, slices} {
		if _, err := one.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: heard, UpdateFunc: func(_, object any) { heard(object) }, DeleteFunc: heard,
		}); err != nil {
			return err
		}
	}
	// The proxies of the fleet always answer, however long a busy machine takes.
	err = consumers.Setup(mgr, consumers.Options{Serving: true, Timeout: time.Hour, Connection: f.Connection, Proxies: f.Proxies, Sent: f.sentTo, Changes: f.changes})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// ending is what a mesh says in the end, without times and its name.
func ending(mesh *kumav1alpha1.Mesh) map[string]string {
	ends := map[string]string{}
	for _, c := range mesh.Status.Conditions {
		ends[c.Type] = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	if record := mesh.Status.Migration; record != nil {
		ends["record"] = fmt.Sprintf("%s %s, %d of %d, %d failed", record.Intent, record.Phase, record.Switched, record.Total, record.Failed)
		for _, c := range record.Consumers {
			ends[c.Name] = fmt.Sprintf("%s %t %d: %s", c.State, c.Switched, c.Batch, c.Message)
		}
	}
	for about, text := range ends {
		ends[about] = strings.ReplaceAll(text, mesh.Name, "MESH")
	}
	return ends
}
