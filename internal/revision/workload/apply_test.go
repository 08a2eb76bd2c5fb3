package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// recording is a client that takes every patch for what it is, and answers with an error if it has one.
type recording struct {
	client.Client
	patches map[string]string
	err     error
	// dry tells whether the last one was to be tried only.
	dry bool
}

func (r *recording) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	var asked client.PatchOptions
	asked.ApplyOptions(options)
	r.dry = len(asked.DryRun) > 0
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	r.patches[name] = fmt.Sprintf("%s %s %s", asked.FieldManager, patch.Type(), body)
	return r.err
}

func recordingWriter(err error) (*writer, *recording) {
	r := &recording{patches: map[string]string{}, err: err}
	return newWriter(r, inventory.New(func(inventory.Change) {}), func() time.Time { return at(60) }, 1), r
}

// TestOneWriteEach has what is written: nothing but the change and the mark, and only to the object as it was seen.
func TestOneWriteEach(t *testing.T) {
	o := observed(inPlace, tag("prod", "Istio/default", target), migrating, batchSize(9),
		namespace("both", "istio-injection=enabled,istio.io/rev="+target), namespace("labelled", rev(old)), namespace("own", ""), namespace("tagged", rev("prod")),
		deploy("labelled/a", runs(old, 2)), deploy("own/a", podLabels(rev(old)), runs(old, 2)), deploy("tagged/a", runs(old, 2)),
	)
	w, r := recordingWriter(nil)
	for range 2 {
		if err := w.applySteps(context.Background(), o, epoch, decide(o, at(60)).Start); err != nil {
			t.Fatal(err)
		}
		// Second, what comes after the namespaces.
		namespace("both", rev(target))(&o)
		namespace("labelled", rev(target))(&o)
	}
	patch := func(uid, metadata, spec string) string {
		return `fairlead/migration application/merge-patch+json {"metadata":{` + metadata + `"resourceVersion":"1","uid":"uid-of-` + uid + `"}` + spec + `}`
	}
	labels := func(text string) string { return `"labels":{` + text + `},` }
	mark := func(uid string, action passage.Action) string {
		text := Mark{
			UID: types.UID("uid-of-" + uid), Istio: "default", Target: target, From: old, Action: action,
			Run: epoch, Batch: 1, Started: at(60), Generation: generation + 1,
		}.String()
		return fmt.Sprintf(`"annotations":{"fairlead.dev/migration":%s},`, encode(t, text))
	}
	const restart = `,"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2025-10-21T10:31:00Z"}}}}`
	want := map[string]string{
		"both":       patch("both", labels(`"istio-injection":null,"istio.io/rev":"default-v1-26-0"`), ""),
		"labelled":   patch("labelled", labels(`"istio.io/rev":"default-v1-26-0"`), ""),
		"labelled/a": patch("labelled-a", mark("labelled-a", ActionRestart), restart),
		"own/a":      patch("own-a", mark("own-a", ActionRelabel), `,"spec":{"template":{"metadata":{"labels":{"istio.io/rev":"default-v1-26-0"}}}}`),
		"tagged/a":   patch("tagged-a", mark("tagged-a", ActionRestart), restart),
	}
	if diff := cmp.Diff(want, r.patches); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

// TestErrorsOfWrites tells what concerns one object, and is remembered, from what is tried again.
func TestErrorsOfWrites(t *testing.T) {
	deployments := schema.GroupResource{Resource: "deployments"}
	broken := apierrors.NewInternalError(errors.New("webhook is down"))
	cases := map[string]struct {
		err error
		// lasts is how long it is tried.
		lasts    time.Duration
		fails    bool
		refusals string
	}{
		"none":            {nil, 0, false, ""},
		"gone":            {apierrors.NewNotFound(deployments, "cart"), 0, false, ""},
		"conflict":        {apierrors.NewConflict(deployments, "cart", errors.New("later")), time.Hour, true, ""},
		"too many":        {apierrors.NewTooManyRequests("slow down", 1), time.Hour, true, ""},
		"nobody answers":  {errors.New("connection refused"), time.Hour, true, ""},
		"forbidden":       {apierrors.NewForbidden(deployments, "cart", errors.New("by policy")), 0, false, `Refused: the API server refused the change: deployments "cart" is forbidden: by policy`},
		"invalid":         {apierrors.NewBadRequest("no"), 0, false, "Refused: the API server refused the change: no"},
		"broken":          {broken, transientTimeout - time.Second, true, ""},
		"broken for long": {broken, transientTimeout, false, "Refused: the API server refused the change: Internal error occurred: webhook is down"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
			w, _ := recordingWriter(tc.err)
			err := w.applySteps(context.Background(), o, epoch, decide(o, at(60)).Start)
			if tc.lasts > 0 {
				w.now = func() time.Time { return at(60).Add(tc.lasts) }
				err = w.applySteps(context.Background(), o, epoch, decide(o, at(60)).Start)
			}
			if fails := err != nil; fails != tc.fails {
				t.Errorf("error %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "move Deployment shop/cart: ") {
				t.Errorf("%q does not say what was being done to what", err)
			}
			w.addRefusals(&o)
			got := ""
			if reason, found := o.Refused["uid-of-shop-cart"]; found {
				got = reason.String()
			}
			if got != tc.refusals {
				t.Errorf("refused: %q, want %q", got, tc.refusals)
			}
		})
	}
}
