package forecast

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	tag      = "backend_shop_svc_80"
	eastern  = "backend_shop_east_default_msvc_80"
	dialName = "backend.shop.svc.cluster.local:80"
)

// seen is a sight of clusters with the zones that answer, all of them called by one name.
func seen(clusters map[string][]string, settings string) proxyView {
	s := proxyView{clusters: map[string]cluster{}, calls: map[string]call{}}
	var all []string
	for name, zones := range clusters {
		var endpoints []Endpoint
		for i, zone := range zones {
			endpoints = append(endpoints, Endpoint{Address: fmt.Sprintf("%s-%d:80", zone, i), Zone: zone})
		}
		s.clusters[name] = cluster{endpoints: endpoints, settings: settings}
		all = append(all, name)
	}
	if len(all) > 0 {
		s.calls[dialName] = call{clusters: sortedUnique(all), settings: settings}
	}
	return s
}

func TestCompare(t *testing.T) {
	both, east := map[string][]string{tag: {"east", "west"}}, map[string][]string{eastern: {"east"}}
	cases := map[string]struct {
		before, after proxyView
		want          []string
	}{
		"nothing":       {seen(both, "1"), seen(both, "1"), nil},
		"the first":     {seen(nil, ""), seen(east, "1"), []string{"listener " + dialName + " appears", "cluster " + eastern + " appears"}},
		"the last goes": {seen(both, "1"), seen(nil, ""), []string{"listener " + dialName + " disappears", "cluster " + tag + " disappears"}},
		"another answers": {seen(both, "1"), seen(east, "1"), []string{
			"listener " + dialName + " changes, moves", "cluster " + tag + " disappears", "cluster " + eastern + " appears",
		}},
		"a zone is gone": {seen(both, "1"), seen(map[string][]string{tag: {"east"}}, "1"), []string{
			"listener " + dialName + " changes, moves", "cluster " + tag + " changes, moves",
		}},
		"an instance more": {seen(both, "1"), seen(map[string][]string{tag: {"east", "west", "east"}}, "1"), []string{
			"cluster " + tag + " changes",
		}},
		"another timeout": {seen(both, "1"), seen(both, "2"), []string{
			"listener " + dialName + " changes, settings", "cluster " + tag + " changes, settings",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, change := range compare(c.before, c.after) {
				text := fmt.Sprintf("%s %s %s", change.Kind, change.Name, change.Action)
				if change.Moves() {
					text += ", moves"
				}
				if change.Settings {
					text += ", settings"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	s := proxyView{clusters: map[string]cluster{
		"a": {endpoints: []Endpoint{{Address: "1", Zone: "east"}, {Address: "2", Zone: "west", Priority: 1}, {Address: "3", Zone: "north", Priority: 1}}},
		"b": {endpoints: []Endpoint{{Address: "4", Zone: "west"}}},
	}}
	cases := map[string]struct {
		clusters        []string
		zones, fallback []string
	}{
		"none":                            {nil, []string{}, nil},
		"one with zones to fall back to":  {[]string{"a"}, []string{"east"}, []string{"north", "west"}},
		"a zone that another is first in": {[]string{"a", "b"}, []string{"east", "west"}, []string{"north"}},
		"one that is not there":           {[]string{"c"}, []string{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := s.zonesOf(c.clusters)
			if !slices.Equal(got.Zones, c.zones) || !slices.Equal(got.Fallback, c.fallback) {
				t.Errorf("answered from %v, or else %v", got.Zones, got.Fallback)
			}
		})
	}
}
