package usage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// index counts the users of revisions and tags by name. An update costs what it changes: one pod, or the pods of a namespace.
// Pods and namespaces that refer to nothing are not kept, so setting the zero value of pod, policy or tag removes.
type index struct {
	namespaces map[string]*namespace
	tags       map[string]tag
	users      map[string]*nameUsers
}

func newIndex() *index {
	return &index{namespaces: map[string]*namespace{}, tags: map[string]tag{}, users: map[string]*nameUsers{}}
}

// namespace is kept as long as it, or a pod in it, refers to a name.
type namespace struct {
	name   string
	policy policy
	pods   map[string]pod
	// workloads has what their pod templates refer to.
	workloads map[workload]pod
}

// workload is the kind and name of one with a pod template.
type workload struct{ kind, name string }

// nameUsers are the users of a name.
type nameUsers struct {
	counts
	within   map[*namespace]namespaceUse
	taggedBy map[string]struct{}
}

// namespaceUse is the use of a name within one namespace.
type namespaceUse struct {
	chosen          bool // by the namespace itself
	pods, workloads podCount
}

// podCount counts pods, or workloads by their pod templates: those that use a name by their labels, and those that use it at all.
type podCount struct{ labelled, any int }

func (c *podCount) add(by podCount) { c.labelled, c.any = c.labelled+by.labelled, c.any+by.any }

type counts struct {
	namespaces, tags int
	pods, workloads  podCount
}

func (t counts) usedAsRevision() bool {
	return t.namespaces > 0 || t.tags > 0 || t.workloads.any > 0 || t.pods.any > 0
}

func (t counts) usedAsTag() bool {
	return t.namespaces > 0 || t.workloads.labelled > 0 || t.pods.labelled > 0
}

// change is a name whose users have changed.
type change struct {
	name string
	// turned is set when the name, as a revision or as a tag, came into use or went out of use.
	turned bool
	// used is set when the name is still in use.
	used bool
}

func (x *index) observeNamespace(o metav1.Object) []change {
	return x.setNamespace(o.GetName(), policyOf(o.GetLabels()))
}

func (x *index) observePod(o metav1.Object) []change {
	return x.setPod(o.GetNamespace(), o.GetName(), podOf(o.GetLabels(), o.GetAnnotations()))
}

func (x *index) observeWorkload(kind string, o metav1.Object) []change {
	template := podTemplate(o)
	return x.setWorkload(o.GetNamespace(), workload{kind, o.GetName()}, templateOf(template.Labels, template.Annotations))
}

func (x *index) observeTag(t *v1.IstioRevisionTag) []change { return x.setTag(t.Name, tagOf(t)) }

func (x *index) setNamespace(name string, now policy) []change {
	ns := x.namespaces[name]
	if ns == nil {
		if now == (policy{}) {
			return nil
		}
		ns = x.addNamespace(name)
	}
	defer x.removeIfEmpty(ns)
	before := ns.policy
	if before == now {
		return nil
	}
	var e indexUpdate
	x.countNamespace(&e, ns, before.name, -1)
	x.countNamespace(&e, ns, now.name, +1)
	if before.decides == now.decides {
		ns.policy = now
		return x.changesOf(e)
	}
	x.countWithin(&e, ns, -1)
	ns.policy = now
	x.countWithin(&e, ns, +1)
	return x.changesOf(e)
}

func (x *index) setPod(namespace, name string, now pod) []change {
	ns := x.namespaces[namespace]
	if ns == nil {
		if now == (pod{}) {
			return nil
		}
		ns = x.addNamespace(namespace)
	}
	defer x.removeIfEmpty(ns)
	before := ns.pods[name]
	if now == (pod{}) {
		delete(ns.pods, name)
	} else {
		// Even if nothing changes: the strings of the old object would otherwise stay in memory for this map alone.
		ns.pods[name] = now
	}
	if before == now {
		return nil
	}
	var e indexUpdate
	x.countPod(&e, ns, ns.uses(before), -1)
	x.countPod(&e, ns, ns.uses(now), +1)
	return x.changesOf(e)
}

func (x *index) setWorkload(namespace string, name workload, now pod) []change {
	ns := x.namespaces[namespace]
	if ns == nil {
		if now == (pod{}) {
			return nil
		}
		ns = x.addNamespace(namespace)
	}
	defer x.removeIfEmpty(ns)
	before := ns.workloads[name]
	if now == (pod{}) {
		delete(ns.workloads, name)
	} else {
		if ns.workloads == nil {
			ns.workloads = map[workload]pod{}
		}
		ns.workloads[name] = now
	}
	if before == now {
		return nil
	}
	var e indexUpdate
	x.countWorkload(&e, ns, ns.uses(before), -1)
	x.countWorkload(&e, ns, ns.uses(now), +1)
	return x.changesOf(e)
}

func (x *index) setTag(name string, now tag) []change {
	before := x.tags[name]
	if before == now {
		return nil
	}
	if now == (tag{}) {
		delete(x.tags, name)
	} else {
		x.tags[name] = now
	}
	var e indexUpdate
	for _, revision := range before.revisions() {
		a := x.usersFor(&e, revision)
		delete(a.taggedBy, name)
		a.tags--
	}
	for _, revision := range now.revisions() {
		a := x.usersFor(&e, revision)
		a.taggedBy[name] = struct{}{}
		a.tags++
	}
	return x.changesOf(e)
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

// uses is the reference of a pod after the policy of its namespace.
func (n *namespace) uses(p pod) pod {
	if n.policy.decides {
		p.chosen = choice{}
	}
	return p
}

func (x *index) addNamespace(name string) *namespace {
	ns := &namespace{name: name, pods: map[string]pod{}}
	x.namespaces[name] = ns
	return ns
}

func (x *index) removeIfEmpty(ns *namespace) {
	if ns.policy == (policy{}) && len(ns.pods)+len(ns.workloads) == 0 {
		delete(x.namespaces, ns.name)
	}
}

func (x *index) countNamespace(e *indexUpdate, ns *namespace, name string, by int) {
	if name == "" {
		return
	}
	a := x.usersFor(e, name)
	a.namespaces += by
	here := a.within[ns]
	here.chosen = by > 0
	a.setWithin(ns, here)
}

// countWithin counts the pods and workloads of a namespace after its policy.
func (x *index) countWithin(e *indexUpdate, ns *namespace, by int) {
	for _, p := range ns.pods {
		x.countPod(e, ns, ns.uses(p), by)
	}
	for _, w := range ns.workloads {
		x.countWorkload(e, ns, ns.uses(w), by)
	}
}

func (x *index) countWorkload(e *indexUpdate, ns *namespace, w pod, by int) {
	w.count(by, func(name string, n podCount) {
		a := x.usersFor(e, name)
		here := a.within[ns]
		a.workloads.add(n)
		here.workloads.add(n)
		a.setWithin(ns, here)
	})
}

func (x *index) countPod(e *indexUpdate, ns *namespace, p pod, by int) {
	p.count(by, func(name string, n podCount) {
		a := x.usersFor(e, name)
		here := a.within[ns]
		a.pods.add(n)
		here.pods.add(n)
		a.setWithin(ns, here)
	})
}

// count adds to the counts of the names that a pod refers to.
func (p pod) count(by int, add func(name string, n podCount)) {
	if p.chosen.name != "" {
		add(p.chosen.name, podCount{labelled: by, any: by})
	}
	if p.injected != "" && p.injected != p.chosen.name {
		add(p.injected, podCount{any: by})
	}
}

func (a *nameUsers) setWithin(ns *namespace, here namespaceUse) {
	if here == (namespaceUse{}) {
		delete(a.within, ns)
		return
	}
	a.within[ns] = here
}

// indexUpdate has the counts before an update of the names that it touches.
type indexUpdate struct{ before map[string]counts }

func (x *index) usersFor(e *indexUpdate, name string) *nameUsers {
	a := x.users[name]
	if a == nil {
		a = &nameUsers{within: map[*namespace]namespaceUse{}, taggedBy: map[string]struct{}{}}
		x.users[name] = a
	}
	if _, ok := e.before[name]; !ok {
		if e.before == nil {
			e.before = map[string]counts{}
		}
		e.before[name] = a.counts
	}
	return a
}

// changesOf are the names whose users an update has changed. An update is about one object, so equal counts mean equal users.
func (x *index) changesOf(e indexUpdate) []change {
	var changes []change
	for name, before := range e.before {
		after := x.users[name].counts
		if after == (counts{}) {
			delete(x.users, name)
		}
		if before == after {
			continue
		}
		changes = append(changes, change{
			name:   name,
			turned: before.usedAsRevision() != after.usedAsRevision() || before.usedAsTag() != after.usedAsTag(),
			used:   after != (counts{}),
		})
	}
	return changes
}
