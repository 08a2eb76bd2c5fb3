package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// read is the mark that a Deployment with this annotation has.
func read(text string) *Mark {
	d := &inventory.Workload{}
	d.Annotations = map[string]string{v1.AnnotationMigration: text}
	return markOf(d)
}

func TestMark(t *testing.T) {
	mark := Mark{
		Istio: "default", Target: target, From: old + ", " + oldest, Action: ActionRelabel,
		Run: epoch, Batch: 3, Started: at(90).Add(123456789),
	}
	reason := passage.Because(v1.ReasonTimeout, `Readiness timeout exceeded after 5m0s: "<&>" …`)
	for name, m := range map[string]Mark{
		"underway":                mark,
		"failed":                  *mark.failed(at(390), reason),
		"done":                    *mark.done(at(100)),
		"failed, and then done":   *mark.failed(at(390), reason).done(at(500)),
		"restarted nothing":       {Istio: "default", Target: target, Action: ActionRelabel, Run: epoch, Started: epoch},
		"written in another zone": {Istio: "default", Target: target, Started: epoch.In(time.FixedZone("", 5*3600+1800))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&m, read(m.String())); diff != "" {
				t.Errorf("read back from %s (-want +got):\n%s", m, diff)
			}
		})
	}
	// People find this with kubectl, and what is not there is not shown.
	const want = `{"uid":"","istio":"default","target":"default-v1-26-0","from":"default-v1-24-0","action":"restart",` +
		`"run":"2025-10-21T10:30:00Z","batch":2,"started":"2025-10-21T10:30:05Z"}`
	short := Mark{Istio: "default", Target: target, From: old, Action: ActionRestart, Run: epoch, Batch: 2, Started: at(5)}
	if diff := cmp.Diff(want, short.String()); diff != "" {
		t.Errorf("as text (-want +got):\n%s", diff)
	}
}

func TestUnreadableMarkIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                   ``,
		"not JSON":                `target=default-v1-26-0`,
		"another type":            `[]`,
		"null":                    `null`,
		"nothing":                 `{}`,
		"no target":               `{"istio":"default","started":"2025-10-21T10:30:05Z"}`,
		"no start":                `{"istio":"default","target":"default-v1-26-0"}`,
		"start that is no time":   `{"istio":"default","target":"default-v1-26-0","started":"yesterday"}`,
		"failed without a reason": `{"istio":"default","target":"default-v1-26-0","started":"2025-10-21T10:30:05Z","failed":"2025-10-21T10:35:05Z"}`,
		"batch that is no number": `{"istio":"default","target":"default-v1-26-0","started":"2025-10-21T10:30:05Z","batch":"1"}`,
		"cut off":                 `{"istio":"default","target":"default-v1-26-0","started":"2025-10-21T10:30:05Z"`,
		"two of them":             `{"target":"a","started":"2025-10-21T10:30:05Z"}{"target":"b","started":"2025-10-21T10:30:05Z"}`,
		"text after it":           `{"target":"a","started":"2025-10-21T10:30:05Z"} by hand`,
	} {
		t.Run(name, func(t *testing.T) {
			if mark := read(text); mark != nil {
				t.Errorf("read as %s", mark)
			}
		})
	}
	if mark := markOf(&inventory.Workload{}); mark != nil {
		t.Errorf("no annotation is read as %s", mark)
	}
}

// FuzzMark reads any text: what can be read at all is a mark that a plan can be made with, and stays what it is.
func FuzzMark(f *testing.F) {
	good := Mark{Istio: "default", Target: target, From: old, Action: ActionRestart, Run: epoch, Batch: 2, Started: at(5)}
	f.Add(good.String())
	f.Add(good.failed(at(300), passage.Because(v1.ReasonTimeout, "late")).String())
	f.Add(good.done(at(60)).String())
	f.Add(`{"target":"default-v1-26-0","started":"0000-01-01T00:00:00+23:59","batch":-9223372036854775808,"failed":"9999-12-31T23:59:59.999999999Z","reason":{}}`)
	f.Add(`{"istio":"default","target":"default-v1-26-0","started":"9999-12-31T23:59:59-23:59","batch":9223372036854775807,"action":"\ud800"}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, text string) {
		mark := read(text)
		if mark != nil {
			if diff := cmp.Diff(mark, read(mark.String())); diff != "" {
				t.Errorf("%s changes when it is written again (-first +second):\n%s", mark, diff)
			}
		}
		o := observed(migrating, namespace("shop", rev(target)),
			deploy("shop/cart", halfway, annotated(v1.AnnotationMigration, text)),
			deploy("shop/pay", runs(old, 2)),
		)
		d := decide(o, at(60))
		if len(d.Start) > 1 {
			t.Errorf("starts %d in batches of one", len(d.Start))
		}
		statusOf(o, d, at(60))
		migratedConditionOf(o, d.Decision)
	})
}

func TestMarkReader(t *testing.T) {
	marked := func(batch int) *inventory.Workload {
		d, _ := makeDeployment("shop/cart", moved(0, batch))
		return inventory.From(d)
	}
	till, _ := makeDeployment("shop/till")
	plain := inventory.From(till)
	first, second := marked(1), marked(2)
	reader := &markCache{}
	for _, c := range []struct {
		name       string
		workloads  []*inventory.Workload
		remembered int
	}{
		{"at first", []*inventory.Workload{plain, first}, 1},
		{"again", []*inventory.Workload{plain, first}, 1},
		{"more", []*inventory.Workload{second, plain, first}, 2},
		{"changed", []*inventory.Workload{marked(3), first}, 2},
		{"gone", []*inventory.Workload{plain}, 0},
	} {
		var nobody *markCache
		if diff := cmp.Diff(nobody.marksOf(c.workloads), reader.marksOf(c.workloads)); diff != "" {
			t.Errorf("%s (-read anew +remembered):\n%s", c.name, diff)
		}
		if len(reader.marks) != c.remembered {
			t.Errorf("%s: %d are remembered, want %d", c.name, len(reader.marks), c.remembered)
		}
	}
}
