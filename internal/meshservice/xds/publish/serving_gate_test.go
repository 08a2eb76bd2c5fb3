package publish

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func TestServingGate(t *testing.T) {
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
