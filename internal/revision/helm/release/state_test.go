package release

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func makeRecord(version, status, fingerprint string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "sea", Labels: map[string]string{
		"owner": "helm", "name": "harbour", "version": version, "status": status,
		v1.LabelFingerprint: fingerprint, v1.LabelChartVersion: "v1.24.0",
	}}}
}

func TestStateOf(t *testing.T) {
	state := func(version int, status, fingerprint string) State {
		return State{"harbour", "sea", true, version, status, fingerprint, "v1.24.0"}
	}
	tests := map[string]struct {
		records  []metav1.PartialObjectMetadata
		want     State
		deployed bool
	}{
		"no record":      {nil, State{}, false},
		"installed":      {[]metav1.PartialObjectMetadata{makeRecord("1", "deployed", "a")}, state(1, "deployed", "a"), true},
		"being upgraded": {[]metav1.PartialObjectMetadata{makeRecord("2", "pending-upgrade", "b"), makeRecord("1", "deployed", "a")}, state(2, "pending-upgrade", "b"), false},
		"ten is more than nine": {
			[]metav1.PartialObjectMetadata{makeRecord("9", "superseded", "a"), makeRecord("10", "deployed", "b")},
			state(10, "deployed", "b"), true,
		},
		"not a record": {[]metav1.PartialObjectMetadata{makeRecord("", "", ""), makeRecord("1", "failed", "a")}, state(1, "failed", "a"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := StateOf(tc.records)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Deployed() != tc.deployed {
				t.Errorf("deployed: %t, want %t", got.Deployed(), tc.deployed)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	absent := State{Name: "harbour", Namespace: "sea"}
	first := State{"harbour", "sea", true, 1, "deployed", "a", ""}
	second := State{"harbour", "sea", true, 2, "deployed", "b", ""}
	other := State{Name: "other", Namespace: "sea"}
	tests := map[string]struct {
		wrote  *State
		cached []State // as seen one after the other
		after  time.Duration
		want   State
	}{
		"nothing written":              {nil, []State{first}, 0, first},
		"cache has not seen it":        {&second, []State{first}, 0, second},
		"cache has not seen it at all": {&first, []State{absent}, 0, first},
		"cache has seen it":            {&second, []State{second}, 0, second},
		"gone after that":              {&second, []State{second, absent}, 0, absent},
		"uninstalled":                  {&absent, []State{second}, 0, absent},
		"installed anew by others":     {&absent, []State{absent, first}, 0, first},
		"too long ago":                 {&second, []State{first}, time.Minute, first},
		"another release":              {&second, []State{other}, 0, other},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var m recentWrites
			if tc.wrote != nil {
				m.add(*tc.wrote, now)
			}
			var got State
			for _, cached := range tc.cached {
				got = m.latest(cached, now.Add(tc.after))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
