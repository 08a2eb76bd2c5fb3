package publish

import "testing"

func TestSwitchedConsumers(t *testing.T) {
	var s switchedConsumers
	if _, ok := s.get("default"); ok {
		t.Error("consumers are published before the first flush")
	}
	s.setWanted("default", map[string]bool{"shop/Deployment/cart": true})
	wanted := s.allWanted()
	s.setWanted("default", map[string]bool{"shop/Deployment/cart": true, "shop/Deployment/mail": true})
	if _, ok := s.get("default"); ok {
		t.Error("wanted consumers count as published")
	}
	s.setPublished("default", wanted["default"])
	if got, ok := s.get("default"); !ok || len(got) != 1 {
		t.Errorf("published are %v, %v: want only the consumers of the flush", got, ok)
	}
	s.forget("default")
	s.setPublished("default", wanted["default"])
	if _, ok := s.get("default"); ok {
		t.Error("a deleted mesh is still published")
	}
}
