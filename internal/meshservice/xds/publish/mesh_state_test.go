package publish

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func TestGate(t *testing.T) {
	a, b := model.ProxyID{Mesh: "one", Name: "a"}, model.ProxyID{Mesh: "two", Name: "b"}
	var g servingGate
	expect := func(when string, got []model.ProxyID, want ...model.ProxyID) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v pass, want %v", when, got, want)
		}
	}
	expect("before any mesh may be served", g.admit([]model.ProxyID{a, b, a}))
	g.open("one")
	expect("when one may be served, those that waited for it", g.admit(nil), a)
	expect("afterwards, what has changed and nothing twice", g.admit([]model.ProxyID{a}), a)
	g.open("two")
	expect("when the other may, in its own time", g.admit(nil), b)
	g.close("two")
	expect("when a mesh has gone", g.admit([]model.ProxyID{a, b}), a)
}

func TestSent(t *testing.T) {
	var s switchedConsumers
	if _, ok := s.get("default"); ok {
		t.Error("something was sent before anything was asked for")
	}
	s.want("default", map[string]bool{"shop/Deployment/cart": true})
	asked := s.pending()
	s.want("default", map[string]bool{"shop/Deployment/cart": true, "shop/Deployment/mail": true})
	if _, ok := s.get("default"); ok {
		t.Error("what was asked for counts as sent")
	}
	s.published("default", asked["default"])
	if got, ok := s.get("default"); !ok || len(got) != 1 {
		t.Errorf("sent are %v, %v: what was asked for in the meantime is not to be told", got, ok)
	}
	s.forget("default")
	s.published("default", asked["default"])
	if _, ok := s.get("default"); ok {
		t.Error("a mesh that has gone is remembered")
	}
}
