package work

import (
	"testing"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestLatest(t *testing.T) {
	for name, c := range map[string]struct {
		wrote, cached string
		want          bool
	}{
		"never written":                    {"", "5", false},
		"the cache is behind":              {"10", "9", true},
		"the cache is up to date":          {"10", "10", false},
		"another client has written since": {"9", "10", false},
		"versions without an order":        {"b", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			var l freshnessCheck
			work := adoptiontest.Object(t, "Work work.karmada.io/v1alpha1")
			work.SetUID("u")
			if c.wrote != "" {
				work.SetResourceVersion(c.wrote)
				l.recordWrite(work)
			}
			work.SetResourceVersion(c.cached)
			if got := l.isStale(work); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
