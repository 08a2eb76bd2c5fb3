package inventory

// Await makes the end of the rollout of one of these workloads Progress, until the last of them ends: only then can the group go
// on. It replaces what was awaited for the group before. A workload whose status does not report the end of a rollout is left
// out: its end has to be seen when it comes.
func (t *Tracker) Await(group string, owners []Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.awaited, group)
	for _, owner := range owners {
		w := t.workloads[owner.key()]
		if w == nil || !w.isRollingOut() || w.Rollout.Progressing == nil {
			continue
		}
		if t.awaited[group] == nil {
			t.awaited[group] = map[key]bool{}
		}
		t.awaited[group][w.key()] = true
	}
}

// stopAwaiting tells whether another workload of the same group is still awaited, and no group waited for this one alone.
func (t *Tracker) stopAwaiting(k key) bool {
	others, last := false, false
	for group, awaited := range t.awaited {
		if !awaited[k] {
			continue
		}
		delete(awaited, k)
		if len(awaited) == 0 {
			delete(t.awaited, group)
			last = true
		} else {
			others = true
		}
	}
	return others && !last
}
