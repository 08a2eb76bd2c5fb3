package usage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// ledger keeps account of who uses what. An entry costs what it changes: a pod its own, a namespace that of its pods.
// It holds nothing of pods and namespaces that say nothing, so the zero values of pod, policy and tag remove.
type ledger struct {
	namespaces map[string]*namespace
	tags       map[string]tag
	accounts   map[string]*account
}

func newLedger() *ledger {
	return &ledger{namespaces: map[string]*namespace{}, tags: map[string]tag{}, accounts: map[string]*account{}}
}

// namespace is there as long as it, or a pod in it, says something.
type namespace struct {
	name   string
	policy policy
	pods   map[string]pod
}

// account is who uses a name.
type account struct {
	tally
	within   map[*namespace]presence
	taggedBy map[string]struct{}
}

// presence is how a name is used within one namespace.
type presence struct {
	chosen bool // by the namespace itself
	pods   podCount
}

// podCount counts pods: those that use a name by their labels, and those that use it at all.
type podCount struct{ labelled, any int }

type tally struct {
	namespaces, tags int
	pods             podCount
}

func (t tally) usedAsRevision() bool { return t.namespaces > 0 || t.tags > 0 || t.pods.any > 0 }

func (t tally) usedAsTag() bool { return t.namespaces > 0 || t.pods.labelled > 0 }

// change tells that a name is used by others than before.
type change struct {
	name string
	// turned is set when, as a revision or as a tag, it came into use or out of it.
	turned bool
	// used is set when anything still uses it.
	used bool
}

func (l *ledger) enterNamespace(o metav1.Object) []change {
	return l.setNamespace(o.GetName(), policyOf(o.GetLabels()))
}

func (l *ledger) enterPod(o metav1.Object) []change {
	return l.setPod(o.GetNamespace(), o.GetName(), podOf(o.GetLabels(), o.GetAnnotations()))
}

func (l *ledger) enterTag(t *v1.IstioRevisionTag) []change { return l.setTag(t.Name, tagOf(t)) }

func (l *ledger) setNamespace(name string, now policy) []change {
	ns := l.namespaces[name]
	if ns == nil {
		if now == (policy{}) {
			return nil
		}
		ns = l.open(name)
	}
	defer l.closeIfEmpty(ns)
	before := ns.policy
	if before == now {
		return nil
	}
	var e entry
	l.countNamespace(&e, ns, before.name, -1)
	l.countNamespace(&e, ns, now.name, +1)
	if before.decides == now.decides {
		ns.policy = now
		return l.settle(e)
	}
	for _, p := range ns.pods {
		l.countPod(&e, ns, ns.uses(p), -1)
	}
	ns.policy = now
	for _, p := range ns.pods {
		l.countPod(&e, ns, ns.uses(p), +1)
	}
	return l.settle(e)
}

func (l *ledger) setPod(namespace, name string, now pod) []change {
	ns := l.namespaces[namespace]
	if ns == nil {
		if now == (pod{}) {
			return nil
		}
		ns = l.open(namespace)
	}
	defer l.closeIfEmpty(ns)
	before := ns.pods[name]
	if now == (pod{}) {
		delete(ns.pods, name)
	} else {
		// Even if nothing changes: it puts the strings of the new object in the place of those of the old one, which
		// would otherwise stay in memory for the sake of this map alone.
		ns.pods[name] = now
	}
	if before == now {
		return nil
	}
	var e entry
	l.countPod(&e, ns, ns.uses(before), -1)
	l.countPod(&e, ns, ns.uses(now), +1)
	return l.settle(e)
}

func (l *ledger) setTag(name string, now tag) []change {
	before := l.tags[name]
	if before == now {
		return nil
	}
	if now == (tag{}) {
		delete(l.tags, name)
	} else {
		l.tags[name] = now
	}
	var e entry
	for _, revision := range before.revisions() {
		a := l.account(&e, revision)
		delete(a.taggedBy, name)
		a.tags--
	}
	for _, revision := range now.revisions() {
		a := l.account(&e, revision)
		a.taggedBy[name] = struct{}{}
		a.tags++
	}
	return l.settle(e)
}

func (t tag) revisions() []string {
	var revisions []string
	if t.fixed != "" {
		revisions = append(revisions, t.fixed)
	}
	if t.current != "" && t.current != t.fixed {
		revisions = append(revisions, t.current)
	}
	return revisions
}

// uses is what the pod says as far as it counts in its namespace.
func (n *namespace) uses(p pod) pod {
	if n.policy.decides {
		p.chosen = choice{}
	}
	return p
}

func (l *ledger) open(name string) *namespace {
	ns := &namespace{name: name, pods: map[string]pod{}}
	l.namespaces[name] = ns
	return ns
}

func (l *ledger) closeIfEmpty(ns *namespace) {
	if ns.policy == (policy{}) && len(ns.pods) == 0 {
		delete(l.namespaces, ns.name)
	}
}

func (l *ledger) countNamespace(e *entry, ns *namespace, name string, by int) {
	if name == "" {
		return
	}
	a := l.account(e, name)
	a.namespaces += by
	here := a.within[ns]
	here.chosen = by > 0
	a.put(ns, here)
}

func (l *ledger) countPod(e *entry, ns *namespace, p pod, by int) {
	if p.chosen.name != "" {
		l.account(e, p.chosen.name).count(ns, podCount{labelled: by, any: by})
	}
	if p.injected != "" && p.injected != p.chosen.name {
		l.account(e, p.injected).count(ns, podCount{any: by})
	}
}

func (a *account) count(ns *namespace, by podCount) {
	a.pods.labelled += by.labelled
	a.pods.any += by.any
	here := a.within[ns]
	here.pods.labelled += by.labelled
	here.pods.any += by.any
	a.put(ns, here)
}

func (a *account) put(ns *namespace, here presence) {
	if here == (presence{}) {
		delete(a.within, ns)
		return
	}
	a.within[ns] = here
}

// entry remembers how the accounts that it touches stood before.
type entry struct{ before map[string]tally }

func (l *ledger) account(e *entry, name string) *account {
	a := l.accounts[name]
	if a == nil {
		a = &account{within: map[*namespace]presence{}, taggedBy: map[string]struct{}{}}
		l.accounts[name] = a
	}
	if _, ok := e.before[name]; !ok {
		if e.before == nil {
			e.before = map[string]tally{}
		}
		e.before[name] = a.tally
	}
	return a
}

// settle tells what an entry has changed. An entry speaks of one thing, so that equal counts mean equal users.
func (l *ledger) settle(e entry) []change {
	var changes []change
	for name, before := range e.before {
		after := l.accounts[name].tally
		if after == (tally{}) {
			delete(l.accounts, name)
		}
		if before == after {
			continue
		}
		changes = append(changes, change{
			name:   name,
			turned: before.usedAsRevision() != after.usedAsRevision() || before.usedAsTag() != after.usedAsTag(),
			used:   after != (tally{}),
		})
	}
	return changes
}
