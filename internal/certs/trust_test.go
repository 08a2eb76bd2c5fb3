package certs

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestServable(t *testing.T) {
	old, next := makeAuthority(t, noon), makeAuthority(t, noon.Add(time.Hour))
	now := noon.Add(2 * time.Hour)
	cases := map[string]struct {
		serving *pair
		trusted []*x509.Certificate
		want    bool
	}{
		"nothing is served yet":                {nil, nil, true},
		"the new authority is not trusted":     {old.pair(t, noon), authorities(old), false},
		"the new authority is trusted":         {old.pair(t, noon), authorities(old, next), true},
		"nobody trusts anything":               {old.pair(t, noon), nil, false},
		"what is served has ended":             {old.pair(t, now.Add(-10*time.Hour)), authorities(old), true},
		"the same authority, which is trusted": {next.pair(t, noon.Add(time.Hour)), authorities(next), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := servable(c.serving, next.pair(t, now), c.trusted, now); got != c.want {
				t.Errorf("servable: %t", got)
			}
		})
	}
}

func TestTrustSettles(t *testing.T) {
	a, b := makeAuthority(t, noon), makeAuthority(t, noon)
	var seen trust
	at := func(after time.Duration) []*x509.Certificate {
		return seen.settled(authorities(a, b), time.Minute, noon.Add(after))
	}
	expect := func(what string, got []*x509.Certificate, want ...*authority) {
		t.Helper()
		if diff := cmp.Diff(string(encodeBundle(authorities(want...)...)), string(encodeBundle(got...))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	seen.observe(authorities(a), nil, noon)
	expect("just published", at(0))
	seen.observe(authorities(a, b), nil, noon.Add(50*time.Second))
	expect("published for a minute", at(time.Minute), a)
	seen.observe(authorities(b), nil, noon.Add(70*time.Second))
	expect("withdrawn", at(2*time.Minute), b)
	seen.observe(authorities(a, b), nil, noon.Add(2*time.Minute))
	expect("published again", at(2*time.Minute), b)
}

func TestBundle(t *testing.T) {
	const overlap = 10 * time.Minute
	old, own, newer := makeAuthority(t, noon), makeAuthority(t, noon.Add(time.Hour)), makeAuthority(t, noon.Add(2*time.Hour))
	ended := makeAuthority(t, noon.Add(-200*time.Hour))
	now := noon.Add(3 * time.Hour)
	cases := map[string]struct {
		published []*authority
		// seen is how long ago those were first seen as they are.
		seen time.Duration
		drop bool
		want []*authority
	}{
		"nothing is published":                     {nil, 0, true, []*authority{own}},
		"ours is published":                        {[]*authority{own}, time.Hour, true, []*authority{own}},
		"an old one may still be served":           {[]*authority{old}, overlap - 1, true, []*authority{old, own}},
		"an old one is not served any more":        {[]*authority{old, own}, overlap, true, []*authority{own}},
		"dropping is left to another replica":      {[]*authority{old, own}, time.Hour, false, []*authority{old, own}},
		"a newer one is not for us to drop":        {[]*authority{newer}, time.Hour, true, []*authority{own, newer}},
		"one that has ended":                       {[]*authority{ended, own}, 0, false, []*authority{own}},
		"an old one that nobody has looked at yet": {[]*authority{old}, -1, true, []*authority{old, own}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var seen trust
			if c.seen >= 0 {
				seen.observe(authorities(c.published...), authorities(own), now.Add(-c.seen))
			}
			got := bundle(authorities(c.published...), authorities(own), seen, c.drop, overlap, now)
			want := encodeBundle(authorities(c.want...)...)
			if diff := cmp.Diff(string(want), string(encodeBundle(got...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
