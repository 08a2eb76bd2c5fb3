package istio

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

// reports of one migration, as a watch sees them one after the other.
func reportsOfAMigration() []*status {
	own := planOf(nil, step("run", "default-v1-24-0", passage.Done, "serves"))
	hold := passage.Hold(v1.ReasonPaused, "paused by hand")
	ended := func(s *passage.Step) { inBatch(1)(s); s.EndedAt = s.StartedAt.Add(7 * time.Second) }
	failed := func(s *passage.Step) { inBatch(1)(s); because("Readiness timeout exceeded after 5m0s")(s) }
	stays := workloadStep("StatefulSet", "db", "stay", passage.Skipped, because("a StatefulSet is not moved"))
	var reports []*status
	for i, w := range []*workloads{
		moving(hold, workloadStep("Deployment", "a", "restart", passage.Pending, nil), workloadStep("Deployment", "b", "restart", passage.Pending, nil), stays),
		moving(nil, workloadStep("Deployment", "a", "restart", passage.Running, running("0/1 ready")), workloadStep("Deployment", "b", "restart", passage.Running, running("0/1 ready")), stays),
		moving(nil, workloadStep("Deployment", "a", "restart", passage.Done, ended), workloadStep("Deployment", "b", "restart", passage.Running, running("0/1 ready")), stays),
		moving(nil, workloadStep("Deployment", "a", "restart", passage.Done, ended), workloadStep("Deployment", "b", "restart", passage.Running, running("0/1 ready")), stays),
		moving(nil, workloadStep("Deployment", "a", "restart", passage.Done, ended), workloadStep("Deployment", "b", "restart", passage.Failed, failed), stays),
	} {
		reports = append(reports, newStatus(observed{istio: &v1.Istio{}, plan: own, workloads: w}, now.Add(time.Duration(i)*time.Second)))
	}
	return reports
}

func TestLineWriter(t *testing.T) {
	var out bytes.Buffer
	printer := render.NewLineWriter(&out)
	for _, r := range reportsOfAMigration() {
		printer.Draw(r)
	}
	want := `12:00:00  control planes of Istio default to default-v1-24-0: Completed
12:00:00  StatefulSet shop/db: stays: a StatefulSet is not moved
12:00:00  workloads: Held: paused by hand
12:00:00  workloads to default-v1-26-0: Held, 0 of 2 done, 1 batch
12:00:01  Deployment shop/a: restart in batch 1
12:00:01  Deployment shop/b: restart in batch 1
12:00:01  workloads to default-v1-26-0: InProgress, 0 of 2 done, 2 running, batch 1 of 1
12:00:02  Deployment shop/a: done after 7s
12:00:04  Deployment shop/b: restart failed: Readiness timeout exceeded after 5m0s
12:00:04  workloads to default-v1-26-0: Failed, 1 of 2 done, 1 failed, batch 1 of 1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTTY(t *testing.T) {
	for name, height := range map[string]int{"tall": 50, "short": 8, "unknown": 0} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := render.NewTTY(&out, func() int { return height })
			for _, r := range reportsOfAMigration() {
				out.Reset()
				p.Draw(r)
				frame := out.String()
				if lines := strings.Count(frame[strings.Index(frame, "\033[H"):], "\n"); height > 0 && lines >= height {
					t.Errorf("%d lines on a terminal of %d", lines, height)
				}
				if !strings.Contains(frame, "\033[H") || !strings.Contains(frame, "Ctrl-C") {
					t.Errorf("not drawn over what was there:\n%q", frame)
				}
			}
			if name == "tall" && !strings.Contains(out.String(), "1 of 2 done, 1 failed") {
				t.Errorf("the last picture does not show the end:\n%s", out.String())
			}
			out.Reset()
			p.End()
			if out.String() != "\033[1A\033[K" {
				t.Errorf("the line about Ctrl-C stays: %q", out.String())
			}
		})
	}
}

// The first line speaks of control planes, and says so where workloads that move are below it.
func TestTitle(t *testing.T) {
	own := planOf(nil, step("run", "default-v1-24-0", passage.Done, "serves"))
	unsettled := moving(nil, workloadStep("Deployment", "a", "restart", passage.Running, running("0/1 ready")))
	for want, w := range map[string]*workloads{
		"Istio default to default-v1-24-0: Completed\n":                   nil,
		"Control planes of Istio default to default-v1-24-0: Completed\n": unsettled,
	} {
		var out bytes.Buffer
		render.PrintStatus(&out, render.Text, newStatus(observed{istio: &v1.Istio{}, plan: own, workloads: w}, now))
		if got, _, _ := strings.Cut(out.String(), "1 of 1 done"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
