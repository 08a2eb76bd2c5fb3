package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestKindsOfErrors(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	nobody := &url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, test := range map[string]struct {
		err                  error
		forGood, ofTheServer bool
	}{
		"a policy":      {err: apierrors.NewForbidden(deployments, "cart", errors.New("frozen until Monday")), forGood: true},
		"invalid":       {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "cart", nil), forGood: true},
		"a bad request": {err: apierrors.NewBadRequest("no"), forGood: true},
		"no permission, or none that is known yet": {
			err: apierrors.NewForbidden(deployments, "cart", errors.New(`User "fairlead" cannot patch resource "deployments"`)),
		},
		"a webhook that is down":          {err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"nobody listens":                  {err: fmt.Errorf("patch: %w", nobody), ofTheServer: true},
		"the server is busy":              {err: apierrors.NewTooManyRequests("later", 1), ofTheServer: true},
		"the server is leaving":           {err: apierrors.NewServiceUnavailable("bye"), ofTheServer: true},
		"the server is slow":              {err: apierrors.NewTimeoutError("slow", 1), ofTheServer: true},
		"the server does not know us yet": {err: apierrors.NewUnauthorized("who?"), ofTheServer: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isPermanentRefusal(test.err); got != test.forGood {
				t.Errorf("refused for good: %t", got)
			}
			if got := isServerError(test.err); got != test.ofTheServer {
				t.Errorf("of the server: %t", got)
			}
		})
	}
}

// TestRefusalsEnd when somebody asks to try again, or wants something else. What changes is asked about.
func TestRefusalsEnd(t *testing.T) {
	var due time.Time
	refused := func(changes ...part) bool {
		o := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
		w, _ := recordingWriter(apierrors.NewForbidden(schema.GroupResource{}, "cart", errors.New("no")))
		if err := w.applySteps(context.Background(), o, epoch, decide(o, at(60)).Start); err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			change(&o)
		}
		w.now = func() time.Time { return at(60).Add(24 * time.Hour) }
		w.addRefusals(&o)
		due = o.Refused["uid-of-shop-cart"].retryAt
		return len(o.Refused) > 0
	}
	if !refused() || !due.Equal(at(60).Add(dryRunInterval)) {
		t.Error("it ends by itself")
	}
	if refused(annotatedIstio("fairlead.dev/retry", "now")) {
		t.Error("it is not tried again")
	}
	if refused(func(o *Observed) { o.Target.Name = oldest }) {
		t.Error("it is refused for another target")
	}
	changed := func(o *Observed) {
		d := *o.Inventory.Workloads[0]
		d.Generation++
		o.Inventory.Workloads[0] = &d
	}
	if !refused(changed) || !due.Equal(at(60).Add(24*time.Hour)) {
		t.Error("what has changed is not asked about")
	}
	if refused(func(o *Observed) { o.Inventory.Workloads = nil }) {
		t.Error("what is gone is remembered")
	}
}

// TestContest leaves a label to who sets it back each time.
func TestContest(t *testing.T) {
	o := observed(migrating, namespace("shop", rev(old)))
	w, r := recordingWriter(nil)
	now := at(60)
	w.now = func() time.Time { return now }
	moved := func() bool {
		t.Helper()
		clear(r.patches)
		if err := w.applySteps(context.Background(), o, epoch, decide(o, now).Start); err != nil {
			t.Fatal(err)
		}
		w.addRefusals(&o)
		return r.patches["shop"] != ""
	}
	for i := range maxRelabels {
		if !moved() {
			t.Fatalf("it gave in after %d times", i)
		}
		now = now.Add(time.Minute)
	}
	for range 2 {
		if moved() {
			t.Error("it goes on for ever")
		}
	}
	failures := decide(o, now).Plan.Failures()
	const want = "label was moved to default-v1-26-0 3 times, and another client sets it back to default-v1-24-0 each time; " +
		"change the label at its source, such as a manifest in git"
	if len(failures) != 1 || failures[0].Object.Kind != kindNamespace || failures[0].Reason.Message != want {
		t.Errorf("it tells %+v", failures)
	}
	annotatedIstio("fairlead.dev/retry", "now")(&o)
	w.addRefusals(&o)
	if !moved() {
		t.Error("it does not try again when asked to")
	}
	now = now.Add(relabelWindow + time.Second)
	for range maxRelabels {
		if !moved() {
			t.Fatal("it does not forget")
		}
	}
}

// TestProbe asks again, without writing, and only when it is time to.
func TestProbe(t *testing.T) {
	o := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
	w, r := recordingWriter(apierrors.NewForbidden(schema.GroupResource{}, "cart", errors.New("frozen")))
	now := at(60)
	w.now = func() time.Time { return now }
	if err := w.applySteps(t.Context(), o, epoch, decide(o, now).Start); err != nil {
		t.Fatal(err)
	}
	probe := func() (asked, changed bool) {
		clear(r.patches)
		w.addRefusals(&o)
		changed = w.dryRunRefused(t.Context(), o, decide(o, now).Plan.Failures())
		return len(r.patches) > 0, changed
	}
	if asked, _ := probe(); asked {
		t.Error("it asks at once")
	}
	now = now.Add(dryRunInterval)
	if got := w.nextDryRun(o, decide(o, now).Plan.Failures()); !got.Equal(now) {
		t.Errorf("it wants to ask at %s, not at %s", got, now)
	}
	if asked, changed := probe(); !asked || changed {
		t.Errorf("asked: %t, changed: %t", asked, changed)
	}
	if asked, _ := probe(); asked {
		t.Error("it asks all the time")
	}
	r.err = nil
	now = now.Add(dryRunInterval)
	if asked, changed := probe(); !asked || !changed || !r.dry {
		t.Errorf("asked: %t, without writing: %t, changed: %t", asked, r.dry, changed)
	}
	if w.addRefusals(&o); len(o.Refused) > 0 {
		t.Error("it is refused still")
	}
}

// TestRestoreFailures covers the CLI, which has only the status.
func TestRestoreFailures(t *testing.T) {
	failed := func(failures ...v1.WorkloadMigrationFailure) part {
		return func(o *Observed) {
			migrating(o)
			status := o.Istio.Status.WorkloadMigration.DeepCopy()
			o.Istio.Status.WorkloadMigration = status
			status.State, status.CompletionTime = v1.WorkloadMigrationStateFailed, ptr.To(metav1.NewTime(at(90)))
			status.FailedWorkloads, status.Failures = int32(len(failures)), failures
		}
	}
	of := func(kind, namespace, name string, code v1.Reason) v1.WorkloadMigrationFailure {
		return v1.WorkloadMigrationFailure{Kind: kind, Namespace: namespace, Name: name, Reason: "no", Code: code, Timestamp: metav1.NewTime(at(80))}
	}
	cart := of("Deployment", "shop", "cart", v1.ReasonRefused)
	legacy := of("Deployment", "shop", "cart", "")
	legacy.Reason = "the API server refused it: no"
	var ten []v1.WorkloadMigrationFailure
	for range v1.MaxReportedFailures {
		ten = append(ten, of("Deployment", "shop", "gone", v1.ReasonTimeout))
	}
	cases := map[string]struct {
		parts []part
		want  string
	}{
		"a Deployment":                    {[]part{failed(cart)}, "uid-of-shop-cart"},
		"one without a code":              {[]part{failed(legacy)}, "uid-of-shop-cart"},
		"one that is gone":                {[]part{failed(of("Deployment", "shop", "gone", v1.ReasonRefused))}, ""},
		"one that has failed otherwise":   {[]part{failed(of("Deployment", "shop", "cart", v1.ReasonTimeout))}, ""},
		"a namespace":                     {[]part{failed(of("Namespace", "", "shop", v1.ReasonContested))}, "uid-of-shop"},
		"tried again since":               {[]part{failed(cart), annotatedIstio("fairlead.dev/retry", at(91).Format(time.RFC3339Nano))}, ""},
		"tried again before":              {[]part{failed(cart), annotatedIstio("fairlead.dev/retry", at(89).Format(time.RFC3339Nano))}, "uid-of-shop-cart"},
		"more than there is room for":     {[]part{failed(ten...)}, "and others"},
		"more, and none is to be started": {[]part{failed(ten...), failFast}, ""},
		"one that is in progress":         {[]part{failed(cart), migrating}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(append([]part{
				namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)), deploy("shop/pay", runs(old, 2)),
			}, tc.parts...)...)
			o.restoreFailures()
			var got []string
			for uid := range o.Refused {
				got = append(got, string(uid))
			}
			slices.Sort(got)
			if o.unreportedFailures {
				got = append(got, "and others")
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("refused: %q, want %q", got, tc.want)
			}
		})
	}
}
