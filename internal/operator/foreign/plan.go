package foreign

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// WritesFor is how long a controller counts as writing after its last write that was seen. Who looks less often may miss a write.
const WritesFor = 2 * time.Minute

// maxSeen bounds how many findings a message names.
const maxSeen = 3

// Observed is what there is of another system in a cluster.
type Observed struct {
	Deployments []Deployment
	Leases      []Lease
	Objects     []Object
	CRDs        []CRD
	// Unknown are the kinds that could not be read.
	Unknown []Unknown
}

// Unknown is a kind that could not be read.
type Unknown struct {
	Kind  string
	Cause UnknownCause
	Err   string
}

func (u Unknown) String() string { return u.Kind + ": " + u.Err }

// UnknownCause is why a kind could not be read.
type UnknownCause string

// The causes.
const (
	// Forbidden holds until the permission is granted.
	Forbidden UnknownCause = "Forbidden"
	// Unavailable is a server that does not answer now, such as an aggregated one.
	Unavailable UnknownCause = "Unavailable"
	// Failed is an error of the server, such as that of a webhook that converts objects.
	Failed UnknownCause = "Failed"
)

// The kinds of controllers; others are those of the objects that they write.
const (
	kindDeployment = "Deployment"
	kindLease      = "Lease"
	kindCRD        = "CustomResourceDefinition"
)

// IsUnavailable tells whether some kind could not be read for now, so that only what was seen counts.
func (o Observed) IsUnavailable() bool {
	return slices.ContainsFunc(o.Unknown, func(u Unknown) bool { return u.Cause == Unavailable })
}

// IsOfControllers tells whether the kind is one by which controllers are seen, rather than what they have written.
func (u Unknown) IsOfControllers() bool { return u.Kind == kindDeployment || u.Kind == kindLease }

// Deployment of the controllers of a system.
type Deployment struct {
	Namespace, Name string
	// Replicas are those that are wanted, and Pods those that there are, also the ones that are terminating.
	Replicas, Pods int32
}

// Lease of the controllers of a system.
type Lease struct {
	Namespace, Name string
	Holder          string
	// Renewed holds while the holder renews it, as far as can be told.
	Renewed bool
}

// Object that a system has written, or that waits for it.
type Object struct {
	Kind, Namespace, Name string
	// Manager is the field manager of the system, and Wrote when it wrote last.
	Manager string
	Wrote   time.Time
	// Finalizers of the system.
	Finalizers []string
	// Claimed holds if Fairlead has written the object since.
	Claimed bool
}

func (o Object) String() string {
	return o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// CRD that another installer owns.
type CRD struct {
	Name string
	// Owner says who, such as "Helm release istio-system/sail-operator".
	Owner string
}

// Decision whether a passage holds.
type Decision struct {
	Hold bool `json:"hold"`
	// Acts holds if the other controller acts now, rather than having left traces.
	Acts bool `json:"acts"`
	// Seen says what was seen, and Action what to do.
	Seen   []string `json:"seen,omitempty"`
	Action string   `json:"action,omitempty"`
}

// Decide whether a passage holds because of another controller. One that acts holds the passage in any case, and traces of one
// unless the user has asked to take over.
func Decide(s System, o Observed, takeOver bool, now time.Time) Decision {
	acting, ways := acts(o, now)
	left := traces(o)
	d := Decision{Acts: len(acting) > 0, Seen: bounded(append(acting, left...))}
	switch {
	case d.Acts && takeOver:
		d.Hold, d.Action = true, fmt.Sprintf("%s; then the passage goes on by itself", strings.Join(ways, " and "))
	case d.Acts:
		d.Hold, d.Action = true, fmt.Sprintf("to keep the %s, start Fairlead without the passage (--passages, chart value passages); "+
			"to move in, %s, and start Fairlead with --take-over %s (chart value takeOver): see %s", s.Name, strings.Join(ways, " and "), s.Passage, s.Page)
	case len(left) > 0 && !takeOver:
		d.Hold, d.Action = true, fmt.Sprintf("if the %s no longer runs anywhere, start Fairlead with --take-over %s (chart value takeOver); "+
			"otherwise start Fairlead without the passage (--passages, chart value passages): see %s", s.Name, s.Passage, s.Page)
	}
	return d
}

// Message of a decision to hold.
func (d Decision) Message(s System) string {
	verb := "has left traces"
	if d.Acts {
		verb = "acts"
	}
	return fmt.Sprintf("%s %s on the kinds of the passage %s: %s", s.Name, verb, s.Passage, strings.Join(d.Seen, ", "))
}

// acts are the signs that the other controller acts now, and what ends each.
func acts(o Observed, now time.Time) (seen, ways []string) {
	for _, d := range o.Deployments {
		if d.Replicas > 0 {
			seen = append(seen, fmt.Sprintf("Deployment %s/%s is scaled to %d", d.Namespace, d.Name, d.Replicas))
			ways = append(ways, fmt.Sprintf("scale Deployment %s/%s to 0", d.Namespace, d.Name))
		} else if d.Pods > 0 {
			seen = append(seen, fmt.Sprintf("Deployment %s/%s is scaled to 0 and still has %d pods", d.Namespace, d.Name, d.Pods))
			ways = append(ways, fmt.Sprintf("wait until the pods of Deployment %s/%s have ended", d.Namespace, d.Name))
		}
	}
	for _, l := range o.Leases {
		if l.Renewed {
			seen = append(seen, fmt.Sprintf("Lease %s/%s is renewed by %s", l.Namespace, l.Name, l.Holder))
			if len(ways) == 0 {
				ways = append(ways, "stop "+l.Holder)
			}
		}
	}
	// The last write, for a controller that writes to many objects.
	var last *Object
	for i, object := range o.Objects {
		if wrote := object.Wrote; !object.Claimed && !wrote.IsZero() && now.Sub(wrote) < WritesFor && (last == nil || wrote.After(last.Wrote)) {
			last = &o.Objects[i]
		}
	}
	if last != nil {
		seen = append(seen, fmt.Sprintf("%s has just been written by %s", *last, last.Manager))
		if len(ways) == 0 {
			ways = append(ways, fmt.Sprintf("stop %s, which counts as stopped %.0f minutes after its last write", last.Manager, WritesFor.Minutes()))
		}
	}
	return seen, ways
}

// traces are what a controller has left that may act again.
func traces(o Observed) []string {
	var seen []string
	for _, crd := range o.CRDs {
		seen = append(seen, fmt.Sprintf("CRD %s belongs to %s", crd.Name, crd.Owner))
	}
	for _, object := range o.Objects {
		switch {
		case object.Claimed:
		case len(object.Finalizers) > 0:
			seen = append(seen, fmt.Sprintf("%s has the finalizer %s", object, object.Finalizers[0]))
		case object.Manager != "":
			seen = append(seen, fmt.Sprintf("%s has fields of %s", object, object.Manager))
		}
	}
	return seen
}

func bounded(seen []string) []string {
	if len(seen) <= maxSeen {
		return seen
	}
	return append(slices.Clone(seen[:maxSeen]), fmt.Sprintf("and %d more", len(seen)-maxSeen))
}

// write is when a field manager wrote to an object last.
type write struct {
	manager string
	at      time.Time
}

// lastWrites are those of a system and of Fairlead. That Fairlead holds is no write to the object.
func lastWrites(s System, all []write) (system, own write) {
	for _, w := range all {
		switch {
		case slices.Contains(s.Managers, w.manager):
			system = latest(system, w)
		case strings.HasPrefix(w.manager, "fairlead") && w.manager != FieldOwner:
			own = latest(own, w)
		}
	}
	return system, own
}

func latest(a, b write) write {
	if a.manager == "" || b.at.After(a.at) {
		return b
	}
	return a
}
