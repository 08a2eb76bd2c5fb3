package faults

import (
	"slices"
	"strings"
)

// Match picks requests.
type Match func(Request) bool

// Write matches what changes the cluster, without Housekeeping.
func Write(r Request) bool { return r.Writes() && !Housekeeping(r) }

// Watch matches the opening of a watch.
func Watch(r Request) bool { return r.Verb == "watch" }

// Any matches every request.
func Any(Request) bool { return true }

// To matches requests to a resource, written as Request.Kind does
// ("deployments.apps", "istios.sailoperator.io/status"), by any of the verbs, or
// by every verb when none is given.
func To(kind string, verbs ...string) Match {
	return func(r Request) bool {
		return r.Kind() == kind && (len(verbs) == 0 || slices.Contains(verbs, r.Verb))
	}
}

// Housekeeping matches writes that are no part of what a process achieves: its
// leases and events, and the reviews and token requests that are sent with POST
// but store nothing.
func Housekeeping(r Request) bool {
	switch {
	case r.Resource.Group == "coordination.k8s.io",
		r.Resource.Resource == "events",
		strings.HasSuffix(r.Resource.Resource, "reviews"),
		r.Resource.Resource == "serviceaccounts" && r.Subresource == "token":
		return true
	}
	return false
}
