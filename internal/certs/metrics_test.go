package certs

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// validity is what the metrics say of a certificate.
func validity(t *testing.T, name string) (from, until time.Time) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if len(metric.GetLabel()) == 0 || metric.GetLabel()[0].GetValue() != name {
				continue
			}
			at := time.Unix(int64(metric.GetGauge().GetValue()), 0)
			switch family.GetName() {
			case "fairlead_certificate_not_before_timestamp_seconds":
				from = at
			case "fairlead_certificate_not_after_timestamp_seconds":
				until = at
			}
		}
	}
	return from, until
}

// The metrics speak of the certificate that is served, and not of one that waits to be.
func TestValidityOfTheServedCertificate(t *testing.T) {
	a := makeAuthority(t, noon)
	first, second := a.pair(t, noon), a.pair(t, noon.Add(8*time.Hour))
	s := newStory(t, first)
	says := func(want *pair) {
		t.Helper()
		from, until := validity(t, "webhook")
		if !from.Equal(want.leaf().NotBefore) || !until.Equal(want.leaf().NotAfter) {
			t.Errorf("from %s until %s, want %s until %s", from, until, want.leaf().NotBefore, want.leaf().NotAfter)
		}
	}
	says(first)
	// Near its end nothing comes, and then the next one.
	s.pass(8 * time.Hour)
	s.load()
	says(first)
	if _, until := validity(t, "webhook"); until.Sub(s.now) > usual.Certificate/5 {
		t.Errorf("%s are left", until.Sub(s.now))
	}
	s.shelf.pair = second
	s.load()
	s.publish(false)
	says(second)
}
