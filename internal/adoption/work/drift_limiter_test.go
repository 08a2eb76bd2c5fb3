package work

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Drift is reverted a few times in a row, and again when the window has passed.
func TestDriftLimiter(t *testing.T) {
	var l driftLimiter
	at := now
	for i := range maxRestores {
		if exceedsLimit(l.recent("it", at), at) {
			t.Fatalf("left alone after %d restores", i)
		}
		l.record("it", at)
		at = at.Add(time.Second)
	}
	if !exceedsLimit(l.recent("it", at), at) {
		t.Error("restored once more")
	}
	if exceedsLimit(l.recent("other", at), at) {
		t.Error("another Work is left alone too")
	}
	if later := now.Add(restoreWindow + time.Second); exceedsLimit(l.recent("it", later), later) || len(l.recent("it", later)) != maxRestores-1 {
		t.Errorf("after the window: %v", l.recent("it", later))
	}
	l.forget("it")
	if len(l.recent("it", at)) > 0 {
		t.Error("a deleted Work is remembered")
	}
}

// The message names the last client that has written the object, besides Fairlead and the writers of its status.
func TestContestedReason(t *testing.T) {
	entry := func(manager, subresource string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: now.Add(time.Duration(minute) * time.Minute)}}
	}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		who     string
	}{
		"nothing is known":    {nil, "another client"},
		"only Fairlead":       {[]metav1.ManagedFieldsEntry{entry(model.FieldOwner, "", 1)}, "another client"},
		"only a status":       {[]metav1.ManagedFieldsEntry{entry("kube-controller-manager", "status", 1)}, "another client"},
		"the last of two":     {[]metav1.ManagedFieldsEntry{entry("argocd", "", 2), entry("kubectl", "", 1)}, "argocd"},
		"before Fairlead":     {[]metav1.ManagedFieldsEntry{entry("argocd", "", 1), entry(model.FieldOwner, "", 2)}, "argocd"},
		"one without a time":  {[]metav1.ManagedFieldsEntry{{Manager: "old"}, entry("argocd", "", 1)}, "argocd"},
		"only without a time": {[]metav1.ManagedFieldsEntry{{Manager: "old"}}, "another client"},
	} {
		t.Run(name, func(t *testing.T) {
			live := adoptiontest.Object(t, "ConfigMap v1")
			live.SetManagedFields(c.entries)
			if got := contestedReason("west", live); got.Code != model.ReasonContested || !strings.Contains(got.Message, "and "+c.who+" keeps changing the object") {
				t.Errorf("got %s", got)
			}
		})
	}
}
