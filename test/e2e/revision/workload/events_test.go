package workload_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// istios records every version of an Istio.
type istios struct{ *history.History[*v1.Istio] }

func (m *mesh) statuses(t testing.TB) istios {
	t.Helper()
	return istios{history.Follow[*v1.Istio](t, m, &v1.IstioList{}, client.MatchingFields{"metadata.name": m.istio.Name})}
}

// ofWorkloads are the different things that were said of workloads, one after the other.
func (h istios) ofWorkloads(t testing.TB) []v1.WorkloadMigrationStatus {
	t.Helper()
	var said []v1.WorkloadMigrationStatus
	for _, event := range h.Events(t) {
		if status := event.Object.Status.WorkloadMigration; status != nil {
			said = append(said, *status)
		}
	}
	return said
}

// states are the states one after the other. Before the first migration it may or may not be said that there is none.
func (h istios) states(t testing.TB) []v1.WorkloadMigrationState {
	t.Helper()
	var states []v1.WorkloadMigrationState
	for _, status := range h.ofWorkloads(t) {
		if len(states) > 0 || status.State != v1.WorkloadMigrationStateIdle {
			states = append(states, status.State)
		}
	}
	return slices.Compact(states)
}

// reported waits for an event about an object, with a reason and a note.
func (m *mesh) reported(t testing.TB, about client.Object, reason, note string) eventsv1.Event {
	t.Helper()
	var found eventsv1.Event
	wait.Until(t, func(ctx context.Context) error {
		namespace := about.GetNamespace()
		if namespace == "" {
			namespace = "default"
		}
		var events eventsv1.EventList
		if err := m.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		var others []string
		for _, e := range events.Items {
			if e.Regarding.UID != about.GetUID() || e.ReportingController != "fairlead.dev/"+v1.PassageMigration {
				continue
			}
			if e.Reason == reason && e.Note == note {
				found = e
				return nil
			}
			others = append(others, e.Reason+": "+e.Note)
		}
		return fmt.Errorf("no event %s %q about %s, only %q", reason, note, about.GetName(), others)
	})
	return found
}
