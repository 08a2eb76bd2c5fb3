package inventory

// Await makes the end of the rollout of one of these workloads Progress, until the last of them ends: only then can the group go
// on. It replaces what was awaited for the group before.
func (t *Tracker) Await(group string, owners []Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.awaited, group)
	for _, owner := range owners {
		w := t.workloads[owner.key()]
		if w == nil || !w.isRollingOut() {
			continue
		}
		if t.awaited[group] == nil {
			t.awaited[group] = map[key]bool{}
		}
		t.awaited[group][w.key()] = true
	}
}

// rolloutEnded is what the end of a rollout means.
func (t *Tracker) rolloutEnded(k key) Change {
	change := Decisive
	for group, awaited := range t.awaited {
		if !awaited[k] {
			continue
		}
		delete(awaited, k)
		if len(awaited) > 0 {
			change = Progress
			continue
		}
		delete(t.awaited, group)
		return Decisive
	}
	return change
}
