package work

import (
	"testing"
	"time"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestIsStale(t *testing.T) {
	for name, c := range map[string]struct {
		wrote, cached string
		// server is the version that the API server has, after the time in which caches receive writes.
		server string
		want   bool
	}{
		"never written":                    {cached: "5"},
		"the cache is behind":              {wrote: "10", cached: "9", want: true},
		"the cache is up to date":          {wrote: "10", cached: "10"},
		"another client has written since": {wrote: "9", cached: "10"},
		"versions without an order":        {wrote: "b", cached: "a"},
		"the cache is behind for long":     {wrote: "10", cached: "9", server: "10", want: true},
		"behind for long, written since":   {wrote: "10", cached: "9", server: "11", want: true},
		"the hub was restored":             {wrote: "10", cached: "9", server: "9"},
		"behind for long, and gone":        {wrote: "10", cached: "9", server: "none", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var l freshnessCheck
			work := &workv1alpha1.Work{}
			work.Namespace, work.Name, work.UID = "karmada-es-west", "it", "u"
			server := adoptiontest.NewAPI(t, nil)
			clock := now
			if c.wrote != "" {
				work.ResourceVersion = c.wrote
				l.recordWrite(work, clock)
			}
			if c.server != "" {
				clock = clock.Add(askAfter + time.Second)
			}
			if c.server != "" && c.server != "none" {
				work.ResourceVersion = c.server
				server = adoptiontest.NewAPI(t, nil, work.DeepCopy())
			}
			work.ResourceVersion = c.cached
			for range 2 { // what is decided stays so
				if got, err := l.isStale(t.Context(), server, work, clock); got != c.want || err != nil {
					t.Errorf("got %t, %v", got, err)
				}
			}
		})
	}
}
