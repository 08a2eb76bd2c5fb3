package serving

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const (
	tags     = fairleadv1alpha1.DestinationTags
	services = fairleadv1alpha1.DestinationMeshServices
)

func TestState(t *testing.T) {
	current, pending := model.Connection{Connected: true, Current: true}, model.Connection{Connected: true}
	nack := model.Connection{Connected: true, NACK: "no"}
	type seen struct {
		model.Connection
		of fairleadv1alpha1.Destinations
	}
	for name, c := range map[string]struct {
		seen []seen
		want model.Connection
	}{
		"connects":                                 {[]seen{{pending, tags}}, model.Connection{Connected: true}},
		"connects before anything is published":    {[]seen{{current, ""}}, model.Connection{Connected: true}},
		"acknowledges tags":                        {[]seen{{pending, tags}, {current, tags}}, model.Connection{Connected: true, Current: true}},
		"the mesh changes":                         {[]seen{{current, tags}, {pending, tags}}, model.Connection{Connected: true, Current: true}},
		"is sent the switch":                       {[]seen{{current, tags}, {pending, services}}, model.Connection{Connected: true, Current: true}},
		"acknowledges the switch":                  {[]seen{{current, tags}, {pending, services}, {current, services}}, model.Connection{Connected: true, Current: true, Switched: true}},
		"the switch changes nothing":               {[]seen{{current, tags}, {current, services}}, model.Connection{Connected: true, Current: true, Switched: true}},
		"rejects the switch":                       {[]seen{{current, tags}, {nack, services}}, model.Connection{Connected: true, Switched: true, NACK: "no"}},
		"is sent another one":                      {[]seen{{current, tags}, {nack, services}, {pending, services}}, model.Connection{Connected: true, Current: true}},
		"acknowledges the one after the rejection": {[]seen{{nack, services}, {current, services}}, model.Connection{Connected: true, Current: true, Switched: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var s state
			for _, one := range c.seen {
				s = s.next(one.Connection, one.of)
			}
			if diff := cmp.Diff(c.want, s.connection()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	tagged := model.Connection{Connected: true, Current: true}
	switched := model.Connection{Connected: true, Current: true, Switched: true}
	nack := model.Connection{Connected: true, NACK: "no"}
	pending := model.Connection{Connected: true}
	for name, c := range map[string]struct{ a, b, want model.Connection }{
		"of one":             {switched, model.Connection{}, switched},
		"of two":             {switched, switched, switched},
		"one is behind":      {switched, tagged, pending},
		"one is not current": {switched, pending, pending},
		"one has rejected":   {switched, nack, nack},
		"of none":            {model.Connection{}, model.Connection{}, model.Connection{}},
	} {
		for _, got := range []model.Connection{merge(c.a, c.b), merge(c.b, c.a)} {
			got.Switched = got.Switched && got.Current // else it is about nothing
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func TestProxiesOfAReport(t *testing.T) {
	states := map[model.ProxyID]state{}
	for i := range 2 * maxMessages {
		states[model.ProxyID{Mesh: "default", Namespace: "shop", Name: fmt.Sprintf("cart-%03d", i)}] = state{acknowledged: tags, rejected: services, message: strings.Repeat("ä", maxMessage)}
	}
	states[model.ProxyID{Mesh: "default", Namespace: "shop", Name: "web.a"}] = state{acknowledged: services}
	listed := listProxies(states)
	size := 0
	for _, p := range listed {
		size += len(p.Message)
		if len(p.Message) > maxMessage {
			t.Fatalf("%s: a message of %d bytes", p.ID, len(p.Message))
		}
	}
	if size > maxMessages*(maxMessage+100) {
		t.Errorf("messages of %d bytes", size)
	}
	back := statesOf(&fairleadv1alpha1.MeshServingReport{Proxies: append(listed, fairleadv1alpha1.ReportedProxy{ID: "nobody"})}, true)
	if len(back) != len(states) {
		t.Errorf("%d proxies are read, want %d", len(back), len(states))
	}
	for id, s := range back {
		if s.acknowledged != states[id].acknowledged || s.rejected != states[id].rejected || (s.message == "") != (s.rejected == "") {
			t.Errorf("%s: %+v is read, want %+v", id, s, states[id])
		}
	}
}

func TestDigest(t *testing.T) {
	if digest(nil) != "" || digest(map[string]bool{"a": false}) != "" {
		t.Error("nothing has a digest")
	}
	if digest(map[string]bool{"a": true, "b": false}) != digest(map[string]bool{"a": true}) || digest(map[string]bool{"a": true}) == digest(map[string]bool{"b": true}) {
		t.Error("a digest is of something else than the switched consumers")
	}
}
