package faults

// Rule lets an Action happen to the requests it matches.
type Rule struct {
	// Match picks the requests; nil stands for Any.
	Match Match
	// Nth is the one matching request that is hit, counted from 1; 0 hits all.
	Nth    int
	Action Action
}

// armed is a rule that remembers how many requests it has matched.
type armed struct {
	Rule
	seen int
}

// hits counts the request, and tells whether it is the one.
func (a *armed) hits(r Request) bool {
	if a.Match != nil && !a.Match(r) {
		return false
	}
	a.seen++
	return a.Nth == 0 || a.Nth == a.seen
}
