package certs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// shelf is a place that a test puts certificates into.
type shelf struct {
	pair *pair
	err  error
}

func (*shelf) String() string                        { return "shelf" }
func (s *shelf) load(context.Context) (*pair, error) { return s.pair, s.err }

// story is a source whose clock the test moves.
type story struct {
	*Source
	t     testing.TB
	shelf *shelf
	now   time.Time
	// published is what callers trust.
	published []byte
}

func newStory(t testing.TB, first *pair) *story {
	s := &story{t: t, shelf: &shelf{pair: first}, now: noon}
	s.Source = newSource(s.shelf, Options{
		Names: []string{host}, AwaitTrust: true, Now: func() time.Time { return s.now }, Log: logr.Discard(),
	}.withDefaults())
	s.load()
	s.publish(false)
	return s
}

func (s *story) load() {
	s.t.Helper()
	if err := s.Load(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// publish does what the keeper of a bundle does.
func (s *story) publish(drop bool) {
	s.Published(s.published)
	s.published = s.Bundle(s.published, drop)
	s.Published(s.published)
}

func (s *story) pass(d time.Duration) { s.now = s.now.Add(d) }

func (s *story) serves(what string, want *pair) {
	s.t.Helper()
	got, err := s.GetCertificate(nil)
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	if !got.Leaf.Equal(want.leaf()) {
		s.t.Errorf("%s: another certificate is served", what)
	}
	trusted, err := parseBundle(s.published)
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	if err := want.trustedBy(trusted, s.now); err != nil {
		s.t.Errorf("%s: callers do not trust it: %v", what, err)
	}
}

func (s *story) trusts(what string, want ...*authority) {
	s.t.Helper()
	if string(encodeBundle(authorities(want...)...)) != string(s.published) {
		s.t.Errorf("%s: other authorities are published", what)
	}
}

func TestAuthorityChangesUnderWay(t *testing.T) {
	old, next := makeAuthority(t, noon), makeAuthority(t, noon.Add(time.Minute))
	first, second := old.pair(t, noon), next.pair(t, noon)
	s := newStory(t, first)
	s.serves("at first", first)

	s.shelf.pair = second
	s.load()
	s.serves("loaded", first)
	s.publish(true)
	s.trusts("published", old, next)
	s.serves("published just now", first)
	s.pass(s.options.Settle)
	s.publish(true)
	s.serves("published for a while", second)
	s.trusts("changed over", old, next)
	s.pass(s.options.Overlap - time.Second)
	s.publish(true)
	s.trusts("another replica may still serve the old one", old, next)
	s.pass(time.Second)
	s.publish(true)
	s.trusts("nobody does any more", next)
	s.serves("at last", second)
}

func TestRenewedCertificateIsServedAtOnce(t *testing.T) {
	a := makeAuthority(t, noon)
	first, second := a.pair(t, noon), a.pair(t, noon)
	s := newStory(t, first)
	s.pass(time.Minute)
	s.publish(false)
	s.shelf.pair = second
	s.load()
	s.serves("loaded", second)
}

func TestCertificateThatEndsIsReplacedWhoeverTrustsTheNext(t *testing.T) {
	old, next := makeAuthority(t, noon), makeAuthority(t, noon)
	s := newStory(t, old.pair(t, noon))
	s.pass(usual.Certificate + time.Second)
	second := next.pair(t, s.now)
	s.shelf.pair = second
	s.load()
	if got, err := s.GetCertificate(nil); err != nil || !got.Leaf.Equal(second.leaf()) {
		t.Errorf("it still serves one that has ended: %v", err)
	}
}

func TestChangeOfMind(t *testing.T) {
	old, next := makeAuthority(t, noon), makeAuthority(t, noon.Add(time.Minute))
	first := old.pair(t, noon)
	s := newStory(t, first)
	s.shelf.pair = next.pair(t, noon)
	s.load()
	s.publish(false)
	s.shelf.pair = first
	s.load()
	s.pass(time.Hour)
	s.publish(false)
	s.serves("taken back", first)
}

func TestBadCertificateChangesNothing(t *testing.T) {
	a := makeAuthority(t, noon)
	first := a.pair(t, noon)
	cases := map[string]struct {
		shelf shelf
		want  string
	}{
		"it cannot be loaded":      {shelf{err: errors.New("it is gone")}, "load the webhook certificate from shelf: it is gone"},
		"it is for somewhere else": {shelf{pair: a.pair(t, noon, "example.com")}, "the certificate is not valid for [" + host + "]"},
		"it has ended":             {shelf{pair: a.pair(t, noon.Add(-2*usual.Certificate))}, "the certificate is valid from 2027-03-13T"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, first)
			*s.shelf = c.shelf
			if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			s.serves("after that", first)
		})
	}
}

func TestWithoutAPublisherNothingWaits(t *testing.T) {
	old, next := makeAuthority(t, noon), makeAuthority(t, noon)
	s := newStory(t, old.pair(t, noon))
	s.options.AwaitTrust = false
	second := next.pair(t, noon)
	s.shelf.pair = second
	s.load()
	if got, _ := s.GetCertificate(nil); !got.Leaf.Equal(second.leaf()) {
		t.Error("the next one waits for what nobody will say")
	}
}
