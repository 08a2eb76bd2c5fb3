package kube

import "testing"

func TestEventDedup(t *testing.T) {
	var d EventDedup[string]
	for i, c := range []struct {
		subject, text string
		isNew         bool
	}{
		{"cart", "", false}, {"cart", "a", true}, {"cart", "a", false}, {"shop", "a", true}, {"cart", "b", true},
		{"cart", "", false}, {"cart", "b", true}, {"shop", "a", false},
	} {
		if got := d.IsNew(c.subject, c.text); got != c.isNew {
			t.Errorf("%d: %s %q is new: %t", i, c.subject, c.text, got)
		}
	}
	d.Forget(func(subject string) bool { return subject == "shop" })
	if d.IsNew("cart", "b") || !d.IsNew("shop", "a") {
		t.Error("only the events about shop are forgotten")
	}
}
