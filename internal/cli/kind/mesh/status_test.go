package mesh

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

var updateMesh = flag.Bool("update-mesh", false, "rewrite what is said of meshes in testdata")

func makeMesh(mode kumav1alpha1.Mode, intent *consumers.Intent, record *kumav1alpha1.MeshMigration, reason, message string) *kumav1alpha1.Mesh {
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{}}}
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: mode}
	if intent != nil {
		mesh.Annotations[kumav1alpha1.AnnotationMigrate], _ = intent.Annotation()
	}
	mesh.Status.Migration = record
	if reason != "" {
		status := metav1.ConditionFalse
		if reason == kumav1alpha1.ReasonSwitched {
			status = metav1.ConditionTrue
		}
		mesh.Status.Conditions = []metav1.Condition{
			{Type: kumav1alpha1.ConditionConsumersSwitched, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)},
			{Type: kumav1alpha1.ConditionServed, Status: "True", Reason: "Served", Message: "12 proxies are connected", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
		}
	}
	return mesh
}

func makeRecord(phase string, consumers ...kumav1alpha1.MigratedConsumer) *kumav1alpha1.MeshMigration {
	r := &kumav1alpha1.MeshMigration{Intent: "one", BatchSize: 2, DelaySeconds: 30, Phase: phase, Consumers: consumers, Total: int32(len(consumers))}
	for _, c := range consumers {
		switch c.State {
		case kumav1alpha1.ConsumerSwitched:
			r.Switched++
		case kumav1alpha1.ConsumerFailed:
			r.Failed++
		}
	}
	return r
}

func makeConsumer(name string, state kumav1alpha1.ConsumerState, batch int32, message string) kumav1alpha1.MigratedConsumer {
	c := kumav1alpha1.MigratedConsumer{
		Name: "shop/Deployment/" + name, State: state, Batch: batch, Message: message, Since: metav1.NewTime(now.Add(-10 * time.Second)),
		Switched: state != kumav1alpha1.ConsumerWaiting,
	}
	if state == kumav1alpha1.ConsumerSwitched || state == kumav1alpha1.ConsumerFailed {
		c.Finished = &c.Since
	}
	return c
}

func TestStatusOfMesh(t *testing.T) {
	const (
		refs     = kumav1alpha1.ModeReachableBackendRefs
		waiting  = kumav1alpha1.ConsumerWaiting
		underway = kumav1alpha1.ConsumerSwitching
		switched = kumav1alpha1.ConsumerSwitched
		failed   = kumav1alpha1.ConsumerFailed
	)
	all := &consumers.Intent{ID: "one", BatchSize: 2}
	paused := makeMesh(refs, all, makeRecord("Held", makeConsumer("cart", switched, 1, ""), makeConsumer("pay", waiting, 0, "")), "Paused",
		"1 of 2 consumers switched, batch 1 of 2: paused by annotation fairlead.dev/paused; resume with `fairlead resume mesh default`")
	paused.Annotations[fairlead.AnnotationPaused] = "true"
	early := makeMesh(kumav1alpha1.ModeExclusive, nil, nil, "", "")
	early.Generation, early.Status.ObservedGeneration, early.Status.Mode = 2, 2, kumav1alpha1.ModeEverywhere
	early.Status.Conditions = []metav1.Condition{{
		Type: kumav1alpha1.ConditionGenerated, Status: "False", Reason: kumav1alpha1.ReasonGenerating, LastTransitionTime: metav1.NewTime(now),
		Message: "1 MeshService not generated yet: shop/pay; until then mode Everywhere is in force",
	}}
	edited := makeMesh(refs, nil, nil, "", "")
	edited.Generation, edited.Status.ObservedGeneration = 2, 1
	cases := map[string]struct {
		mesh *kumav1alpha1.Mesh
		code int
	}{
		"early":    {early, console.ExitOK},
		"edited":   {edited, console.ExitUnfinished},
		"disabled": {makeMesh(kumav1alpha1.ModeDisabled, nil, nil, "", ""), console.ExitOK},
		"ready":    {makeMesh(refs, nil, nil, "", ""), console.ExitOK},
		"unseen":   {makeMesh(refs, all, nil, "", ""), console.ExitUnfinished},
		"underway": {makeMesh(refs, all, makeRecord("InProgress", makeConsumer("cart", switched, 1, ""),
			makeConsumer("pay", underway, 2, ""), makeConsumer("web", underway, 2, ""), makeConsumer("wish", waiting, 0, "")), "Switching",
			"1 of 4 consumers switched, batch 2 of 3: waiting for Deployment shop/pay and 1 more to settle"), console.ExitUnfinished},
		"failed": {makeMesh(refs, all, makeRecord("Stopped", makeConsumer("cart", switched, 1, ""),
			makeConsumer("pay", failed, 1, "proxy pay-0 rejected its configuration (NACK): unknown field; correct the cause, then `fairlead retry mesh default`"),
			makeConsumer("web", waiting, 0, "")), "Failed",
			"1 of 3 consumers switched, 1 failed, batch 1 of 2; shop/Deployment/pay: proxy pay-0 rejected its configuration (NACK): unknown field"), console.ExitFailed},
		"paused": {paused, console.ExitUnfinished},
		"done": {makeMesh(refs, all, makeRecord("Completed", makeConsumer("cart", switched, 1, ""),
			makeConsumer("pay", switched, 1, "no proxy was connected, so no acknowledgement was expected")), "Switched", "2 of 2 consumers switched"), console.ExitOK},
		"recorded": {makeMesh(refs, all, makeRecord("InProgress", makeConsumer("cart", switched, 1, "")), "Switching",
			"0 of 1 consumer switched, batch 1 of 1: waiting for Deployment shop/cart to settle"), console.ExitUnfinished},
		"another intent": {makeMesh(refs, &consumers.Intent{ID: "two"}, makeRecord("Completed", makeConsumer("cart", switched, 1, "")), "Switched", "1 of 1 consumer switched"), console.ExitUnfinished},
		"back":           {makeMesh(refs, &consumers.Intent{ID: "two", Revert: true}, nil, "Reverted", "no consumer is switched"), console.ExitOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			report := newStatus(c.mesh, now)
			render.PrintStatus(&out, render.Text, report)
			var exit console.ExitError
			if err := report.ExitError(); errors.As(err, &exit) && exit.Code != c.code || err == nil && c.code != console.ExitOK {
				t.Errorf("it exits with %v, want %d", err, c.code)
			}
			meshGolden(t, name, out.Bytes())
		})
	}
}

func meshGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
	if *updateMesh {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make it with -update-mesh", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPrintMigration(t *testing.T) {
	resource := connect.Resource{
		Mapping: &meta.RESTMapping{GroupVersionKind: kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshKind)},
		Key:     client.ObjectKey{Name: "default"},
	}
	refs := kumav1alpha1.ModeReachableBackendRefs
	all := []string{"shop/Deployment/cart", "shop/Deployment/pay", "web/StatefulSet/web"}
	half := makeMesh(refs, &consumers.Intent{ID: "one"}, makeRecord("InProgress", makeConsumer("cart", kumav1alpha1.ConsumerSwitched, 1, ""),
		makeConsumer("pay", kumav1alpha1.ConsumerSwitching, 2, "")), "", "")
	cases := map[string]struct {
		mesh   *kumav1alpha1.Mesh
		intent consumers.Intent
	}{
		"migrate all":       {makeMesh(refs, nil, nil, "", ""), consumers.Intent{ID: "x", BatchSize: 2, Delay: metav1.Duration{Duration: time.Minute}}},
		"migrate one":       {makeMesh(refs, nil, nil, "", ""), consumers.Intent{ID: "x", BatchSize: 1, Consumers: all[:1]}},
		"migrate anew":      {half, consumers.Intent{ID: "x", BatchSize: 1}},
		"migrate back":      {half, consumers.Intent{ID: "x", BatchSize: 1, Revert: true}},
		"migrate withdrawn": {makeMesh(refs, &consumers.Intent{ID: "y", BatchSize: 1}, nil, "", ""), consumers.Intent{ID: "x", BatchSize: 1, Revert: true}},
		"migrate nothing":   {makeMesh(refs, nil, nil, "", ""), consumers.Intent{ID: "x", BatchSize: 1, Revert: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			change, err := migrationChange(resource, c.mesh, c.intent, consumers.PlanBatches(c.mesh, c.intent, all, now))
			switch {
			case err != nil:
				t.Fatal(err)
			case change.Noop != "":
				out.WriteString(change.Noop + "\n")
			default:
				change.Show(&out)
			}
			meshGolden(t, name, out.Bytes())
		})
	}
}

func TestKnownConsumers(t *testing.T) {
	mesh := makeMesh(kumav1alpha1.ModeReachableBackendRefs, nil, makeRecord("Completed", makeConsumer("cart", kumav1alpha1.ConsumerSwitched, 1, "")), "", "")
	all := []string{"shop/Deployment/cart", "shop/Deployment/pay"}
	cases := map[string]struct {
		intent consumers.Intent
		want   string
	}{
		"all":                      {consumers.Intent{}, ""},
		"one that is there":        {consumers.Intent{Consumers: all[1:]}, ""},
		"one that is not":          {consumers.Intent{Consumers: []string{"shop/cart"}}, "no Dataplane of Mesh default is part of shop/cart; give --consumers some of shop/Deployment/cart, shop/Deployment/pay"},
		"one that is not switched": {consumers.Intent{Revert: true, Consumers: all[1:]}, "Mesh default has not switched shop/Deployment/pay; give --consumers some of shop/Deployment/cart"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkConsumers(c.intent, mesh, all); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTimeoutHint(t *testing.T) {
	underway := makeMesh(kumav1alpha1.ModeReachableBackendRefs, &consumers.Intent{ID: "one"},
		makeRecord("InProgress", makeConsumer("cart", kumav1alpha1.ConsumerSwitching, 1, "")), "Switching", "0 of 1 consumer switched")
	unseen := makeMesh(kumav1alpha1.ModeReachableBackendRefs, &consumers.Intent{ID: "one"}, nil, "", "")
	for want, mesh := range map[string]*kumav1alpha1.Mesh{
		"if there is no progress, check that the operator runs":                underway,
		"the operator has not reported on the latest spec yet: is it running?": unseen,
	} {
		if got := newStatus(mesh, now).TimeoutHint(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An operator of an earlier version has no MeshConsumerSlices, and its Meshes are watched without.
func TestWatchedObjects(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshKind), meta.RESTScopeRoot)
	if kinds := watchedObjects("default", mapper); len(kinds) != 1 {
		t.Errorf("without the kind of slices, %d kinds are watched", len(kinds))
	}
	mapper.Add(fairleadv1alpha1.GroupVersion.WithKind(fairleadv1alpha1.MeshConsumerSliceKind), meta.RESTScopeRoot)
	if kinds := watchedObjects("default", mapper); len(kinds) != 2 {
		t.Errorf("with the kind of slices, %d kinds are watched", len(kinds))
	}
}
