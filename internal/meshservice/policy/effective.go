package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Effective is the merged policies of a destination. Unset ones are nil.
type Effective struct {
	Timeout        *kumav1alpha1.MeshTimeoutConf               `json:"timeout,omitempty"`
	Retry          *kumav1alpha1.MeshRetryConf                 `json:"retry,omitempty"`
	CircuitBreaker *kumav1alpha1.MeshCircuitBreakerConf        `json:"circuitBreaker,omitempty"`
	LoadBalancing  *kumav1alpha1.MeshLoadBalancingStrategyConf `json:"loadBalancing,omitempty"`
	HTTPRoute      *HTTPRoute                                  `json:"httpRoute,omitempty"`
	TCPRoute       *TCPRoute                                   `json:"tcpRoute,omitempty"`
	// Decisions are the entries that apply, and those that set nothing.
	Decisions []Decision `json:"-"`
	// LeftOut are the entries of MeshHTTPRoutes for which there is no room.
	LeftOut []Finding `json:"-"`

	fingerprint string
	merging     *routeMerge
}

// Fingerprint is equal for the same effect.
func (e *Effective) Fingerprint() string { return e.fingerprint }

// effectiveOf merges entries in the order of precedence.
func effectiveOf(matches []match) *Effective {
	e := &Effective{}
	firsts := map[string]match{}
	for _, m := range matches {
		leftOut := len(e.LeftOut)
		said := e.merge(m)
		first, others := firsts[m.kind]
		switch {
		case len(e.LeftOut) > leftOut:
			e.Decisions = append(e.Decisions, m.decide(false, m.why()+", but "+e.LeftOut[leftOut].Problem))
		case others:
			e.Decisions = append(e.Decisions, m.decision(said, &first))
		default:
			e.Decisions = append(e.Decisions, m.decision(said, nil))
			if said {
				firsts[m.kind] = m
			}
		}
	}
	if e.merging = nil; e.HTTPRoute != nil {
		slices.SortStableFunc(e.HTTPRoute.Rules, compareSpecificity)
	}
	// What is left out is a problem that has to be reported, and one that ends.
	text, err := json.Marshal(struct {
		*Effective
		LeftOut []Finding
	}{e, e.LeftOut})
	if err != nil {
		// Values decoded from the API can be encoded; only hand-made raw JSON cannot.
		text = fmt.Appendf(nil, "%v %v", err, matches)
	}
	sum := sha256.Sum256(text)
	e.fingerprint = hex.EncodeToString(sum[:16])
	return e
}

// merge sets the unset fields from the match, and says whether there were any.
func (e *Effective) merge(m match) bool {
	switch conf := m.conf.(type) {
	case *kumav1alpha1.MeshTimeoutConf:
		return fill(&e.Timeout, conf)
	case *kumav1alpha1.MeshRetryConf:
		return fill(&e.Retry, conf)
	case *kumav1alpha1.MeshCircuitBreakerConf:
		return fill(&e.CircuitBreaker, conf)
	case *kumav1alpha1.MeshLoadBalancingStrategyConf:
		if m.level.byTag() {
			conf = withinZone(conf)
		}
		return fill(&e.LoadBalancing, conf)
	case *kumav1alpha1.MeshHTTPRouteTo:
		return e.mergeRules(m.entry, conf)
	case *kumav1alpha1.MeshTCPRouteTo:
		if e.TCPRoute != nil || len(conf.Rules) == 0 {
			return false
		}
		e.TCPRoute = &TCPRoute{Namespace: m.policy.namespace, BackendRefs: conf.Rules[0].Default.BackendRefs}
		return true
	}
	return false
}

// withinZone is a load balancing strategy for a tag as it applies to a MeshService, which is in one zone: all but crossZone.
func withinZone(l *kumav1alpha1.MeshLoadBalancingStrategyConf) *kumav1alpha1.MeshLoadBalancingStrategyConf {
	if !crossesZones(l) {
		return l
	}
	within, aware := *l, *l.LocalityAwareness
	aware.CrossZone = nil
	within.LocalityAwareness = &aware
	return &within
}

func crossesZones(l *kumav1alpha1.MeshLoadBalancingStrategyConf) bool {
	return l.LocalityAwareness != nil && l.LocalityAwareness.CrossZone != nil
}

// fill copies each field of from that is unset in into, and says whether there was any. A pointer to zero is set: a timeout of
// 0s is not the absence of a timeout.
func fill[T any](into **T, from *T) bool {
	whole := *into
	if whole == nil {
		whole = new(T)
	}
	filled := fillStruct(reflect.ValueOf(whole).Elem(), reflect.ValueOf(from).Elem())
	if filled {
		*into = whole
	}
	return filled
}

var ourPackage = reflect.TypeFor[kumav1alpha1.MeshTimeoutConf]().PkgPath()

func fillStruct(into, from reflect.Value) bool {
	filled := false
	for i := range into.NumField() {
		if fillField(into.Field(i), from.Field(i)) {
			filled = true
		}
	}
	return filled
}

func fillField(into, from reflect.Value) bool {
	// Structs of other packages, such as durations, are copied as a whole.
	structured := from.Kind() == reflect.Pointer && from.Type().Elem().Kind() == reflect.Struct && from.Type().Elem().PkgPath() == ourPackage
	switch {
	case from.IsZero():
		return false
	case structured:
		part := into
		if into.IsNil() {
			part = reflect.New(from.Type().Elem())
		}
		filled := fillStruct(part.Elem(), from.Elem())
		if filled {
			into.Set(part)
		}
		return filled
	case into.IsZero():
		into.Set(from)
		return true
	}
	return false
}
