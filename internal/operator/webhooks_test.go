package operator

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	materializev1alpha2 "github.com/fairlead/fairlead/api/materialize/v1alpha2"
	sailoperatorv1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
)

func TestWhichWebhooksThereAre(t *testing.T) {
	convert := func(logr.Logger) http.Handler { return http.NotFoundHandler() }
	plain := Passage{Name: "plain", CRDs: []string{"istios.sailoperator.io"}}
	converting := Passage{Name: "converting", CRDs: []string{"materializes.materialize.cloud"}, Conversion: convert}
	cases := map[string]struct {
		passages  []Passage
		address   string
		serves    bool
		converted []string
	}{
		"no passage has any": {[]Passage{plain}, loopbackAnyPort, false, nil},
		"one converts":       {[]Passage{plain, converting}, loopbackAnyPort, true, converting.CRDs},
		"switched off":       {[]Passage{converting}, noListener, false, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			options.Webhook.BindAddress = c.address
			hooks := newWebhooks(&rest.Config{}, options, c.passages, logr.Discard())
			if (hooks != nil) != c.serves {
				t.Fatalf("served: %t", hooks != nil)
			}
			if hooks == nil {
				return
			}
			if diff := cmp.Diff(c.converted, hooks.converted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhichKindsNeedTheWebhooks(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	hooks := &webhooks{converted: []string{"materializes.materialize.cloud"}}
	cases := map[string]struct {
		hooks *webhooks
		kind  client.Object
		want  bool
	}{
		"one that is converted":            {hooks, &materializev1alpha2.Materialize{}, true},
		"one that is not":                  {hooks, &sailoperatorv1.Istio{}, false},
		"nothing is converted":             {&webhooks{}, &materializev1alpha2.Materialize{}, false},
		"there are no webhooks to call to": {nil, &materializev1alpha2.Materialize{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := c.hooks.convertsKind(c.kind, scheme); err != nil || got != c.want {
				t.Errorf("needed: %t, %v", got, err)
			}
		})
	}
}

// Every CRD belongs to one passage, or nobody would install it.
func TestPassagesBringAllCRDs(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]int{}
	for _, name := range crdsOf(Passages()) {
		owners[name]++
	}
	for _, crd := range all {
		if owners[crd.Name] != 1 {
			t.Errorf("%s belongs to %d passages", crd.Name, owners[crd.Name])
		}
		delete(owners, crd.Name)
	}
	if len(owners) > 0 {
		t.Errorf("there are no CRDs %v", owners)
	}
}

func TestLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		later := withDelayedCancel(ctx, shutdownDelay)
		cancel()
		time.Sleep(shutdownDelay - time.Nanosecond)
		synctest.Wait()
		if later.Err() != nil {
			t.Error("it ended too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if later.Err() == nil {
			t.Error("it did not end")
		}
	})
}
