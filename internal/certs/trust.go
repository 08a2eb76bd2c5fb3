package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// trust has since when authorities are published.
type trust struct {
	// published is since when each has been published.
	published map[string]time.Time
	// foreign is since when an authority has been published that belongs to no certificate of this replica.
	foreign map[string]time.Time
}

// observe records which authorities are published, and which of these belong to certificates of this replica.
func (t *trust) observe(published, own []*x509.Certificate, now time.Time) {
	before := *t
	t.published, t.foreign = map[string]time.Time{}, map[string]time.Time{}
	for _, authority := range published {
		key := string(authority.Raw)
		t.published[key] = firstSeen(before.published, key, now)
		if !contains(own, authority) {
			t.foreign[key] = firstSeen(before.foreign, key, now)
		}
	}
}

func firstSeen(seen map[string]time.Time, key string, now time.Time) time.Time {
	if since, known := seen[key]; known {
		return since
	}
	return now
}

// settled are the authorities that have been published for so long that every caller trusts them.
func (t *trust) settled(among []*x509.Certificate, settle time.Duration, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(among), func(authority *x509.Certificate) bool {
		since, published := t.published[string(authority.Raw)]
		return !published || now.Sub(since) < settle
	})
}

// isUnused tells whether a foreign authority has been published for so long that no replica serves it any more.
func (t *trust) isUnused(authority *x509.Certificate, overlap time.Duration, now time.Time) bool {
	since, foreign := t.foreign[string(authority.Raw)]
	return foreign && now.Sub(since) >= overlap
}

// bundle is the CA bundle to publish: our own authorities, and published ones that may still be in use. Only one replica
// drops authorities, and never a newer one than its own: this replica may have missed a renewal.
func bundle(published, own []*x509.Certificate, t trust, drop bool, overlap time.Duration, now time.Time) []*x509.Certificate {
	all := slices.Clone(own)
	for _, authority := range published {
		switch {
		case contains(own, authority), authority.NotAfter.Before(now):
		case drop && t.isUnused(authority, overlap, now) && olderThanAny(authority, own):
		default:
			all = append(all, authority)
		}
	}
	return all
}

func olderThanAny(authority *x509.Certificate, own []*x509.Certificate) bool {
	return slices.ContainsFunc(own, func(mine *x509.Certificate) bool { return authority.NotBefore.Before(mine.NotBefore) })
}
