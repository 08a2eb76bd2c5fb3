package v1

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"
)

func TestInactiveRevisionDeletionGracePeriod(t *testing.T) {
	cases := map[string]struct {
		seconds *int64
		want    time.Duration
	}{
		"absent": {nil, 30 * time.Second},
		"zero":   {ptr.To[int64](0), 0},
		"given":  {ptr.To[int64](90), 90 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			strategy := IstioUpdateStrategy{InactiveRevisionDeletionGracePeriodSeconds: tc.seconds}
			if got := strategy.InactiveRevisionDeletionGracePeriod(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
