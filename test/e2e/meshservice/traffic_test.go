package meshservice_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// rate is how many calls are made a second.
const rate = 50

// echoes is a backend that answers, in both zones.
func (s *stage) echoes(t testing.TB) (local, remote *callers.Echo) {
	t.Helper()
	start := func(zone string) *callers.Echo {
		e, err := callers.StartEcho(s.address()+":0", zone)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Stop)
		return e
	}
	local, remote = start(east), start(west)
	s.create(t, service("backend"), s.ingress(t, remote.Address().String(), "backend"))
	s.create(t, deployment("backend", int32(local.Address().Port)))
	s.connect(t, s.play(t, "backend", local.Address().IP.String()))
	return local, remote
}

func (s *stage) bootstrap(t testing.TB, id model.ProxyID) callers.Bootstrap {
	t.Helper()
	return callers.Bootstrap{Server: s.servesAt(t), Node: id.String()}
}

// served runs a consumer and waits until a target answers it: how long a new mesh takes to be is not what is tested.
func (s *stage) served(t testing.TB, consumer, target string) callers.Bootstrap {
	t.Helper()
	bootstrap := s.bootstrap(t, s.runs(t, deployment(consumer, 0)))
	first, err := callers.Dial(target, bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	wait.Until(t, func(ctx context.Context) error {
		_, err := callers.Zone(ctx, first)
		return err
	})
	return bootstrap
}

// calls has a consumer call a target on and on, once it is served. From then on every call counts.
func (s *stage) calls(t testing.TB, consumer, target string) *callers.Caller {
	t.Helper()
	c, err := callers.Start(target, s.served(t, consumer, target), rate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

// answeredBy waits until so many calls in a row are answered in these zones, each of them, and in no other.
func answeredBy(t testing.TB, c interface{ Tally() callers.Tally }, zones ...string) {
	t.Helper()
	const enough = rate
	from := c.Tally()
	wait.Until(t, func(context.Context) error {
		tally := c.Tally()
		now := tally.Since(from)
		if now.Failed > 0 {
			t.Fatalf("a call has failed: %s", tally)
		}
		if now.Total() < enough {
			return fmt.Errorf("only %d calls so far", now.Total())
		}
		for _, zone := range zones {
			if now.Answered[zone] == 0 {
				from = tally
				return fmt.Errorf("of %s, none from %s", now, zone)
			}
		}
		if len(now.Answered) != len(zones) {
			from = tally
			return fmt.Errorf("of %s, not all from %q", now, zones)
		}
		return nil
	})
}

// TestStoryTraffic: a client without a proxy keeps one target, is answered by both zones before the switch and by its own after
// it, and no call fails on the way there and back.
func TestStoryTraffic(t *testing.T) {
	t.Parallel()
	s := newStage(t, kumav1alpha1.ModeReachableBackendRefs)
	s.echoes(t)
	byTag := s.calls(t, "cart", s.target("backend"))
	byName := s.calls(t, "checkout", fmt.Sprintf("backend.%s.svc.cluster.local:80", s.namespace))
	for _, c := range []*callers.Caller{byTag, byName} {
		answeredBy(t, c, east, west)
	}
	s.until(t, meshService("backend", nil), func() error { return nil })

	s.migrate(t, "--batch-size", "1", "--consumers", s.consumer("cart"))
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched)
	answeredBy(t, byTag, east)
	answeredBy(t, byName, east, west)

	s.migrate(t, "--batch-size", "1")
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched, "3 of 3")
	answeredBy(t, byName, east)

	s.migrate(t, "--revert")
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonReverted)
	for _, c := range []*callers.Caller{byTag, byName} {
		answeredBy(t, c, east, west)
		if tally := c.Stop(); tally.Failed > 0 {
			t.Errorf("%d calls: %s", tally.Total(), tally)
		}
	}
}

// TestTrafficOfModes is the same for the modes of the whole mesh.
func TestTrafficOfModes(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.echoes(t)
	c := s.calls(t, "cart", s.target("backend"))
	answeredBy(t, c, east, west)
	for _, mode := range []kumav1alpha1.Mode{kumav1alpha1.ModeEverywhere, kumav1alpha1.ModeExclusive} {
		s.setMode(t, mode)
		answeredBy(t, c, east)
	}
	s.setMode(t, kumav1alpha1.ModeEverywhere)
	s.setMode(t, kumav1alpha1.ModeDisabled)
	answeredBy(t, c, east, west)
	if tally := c.Stop(); tally.Failed > 0 {
		t.Errorf("%d calls: %s", tally.Total(), tally)
	}
}

// timeout is a policy for the old identity of a service.
func (s *stage) timeout(t testing.TB, name, tag, limit string) *kumav1alpha1.MeshTimeout {
	t.Helper()
	var p kumav1alpha1.MeshTimeout
	text := fmt.Sprintf(`
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: %s, namespace: %s, labels: {kuma.io/mesh: %s}}
spec:
  to:
    - targetRef: {kind: MeshService, name: %s}
      default:
        http: {requestTimeout: %s}
`, name, s.namespace, s.mesh, tag, limit)
	if err := yaml.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestConvertedTimeout: a timeout written for the tag and run through `fairlead convert` holds for the MeshService, also once
// its old entry is gone, and takes precedence over another for the tag.
func TestConvertedTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t, kumav1alpha1.ModeEverywhere)
	local, _ := s.echoes(t)
	// The port has a name, by which alone a sectionName refers to it.
	backend := service("backend")
	s.place(backend)
	s.change(t, backend, func() { backend.Spec.Ports[0].Name = "api" })
	generated := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Name: "backend"}}
	s.until(t, generated, func() error {
		if ports := generated.Spec.Ports; len(ports) != 1 || ports[0].Name != "api" {
			return fmt.Errorf("the MeshService has the ports %+v", ports)
		}
		return nil
	})
	connection, err := callers.Dial(s.target("backend"), s.bootstrap(t, s.runs(t, deployment("cart", 0))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	// given waits until a call was given a timeout between these, and with 0 until it was given none. That calls end with
	// a timeout is no matter: a busy machine may be slow.
	given := func(more, most time.Duration) {
		t.Helper()
		wait.Until(t, func(context.Context) error {
			_, err := callers.Zone(t.Context(), connection)
			ended := err == nil || status.Code(err) == codes.DeadlineExceeded
			if got, limited := local.Timeout(); !ended || limited != (most > 0) || got < more || got > most {
				return fmt.Errorf("the call was given a timeout of %s, want %s to %s: %v", got, more, most, err)
			}
			return nil
		})
	}
	given(0, 0)

	converted := s.convert(t, s.timeout(t, "hasty", s.tag("backend"), "2h"))
	if len(converted.Spec.To) != 2 || converted.Spec.To[1].TargetRef.Section() != "api" {
		t.Fatalf("convert has made of one entry %+v", converted.Spec.To)
	}
	converted.Spec.To = converted.Spec.To[1:]
	s.create(t, converted)
	given(time.Hour, 2*time.Hour)
	// One for the tag, which is the first by name, gives way to one for the MeshService, also without a sectionName.
	first := s.timeout(t, "first", s.tag("backend"), "8h")
	s.create(t, first)
	s.change(t, converted, func() {
		converted.Spec.To[0].TargetRef.SectionName = nil
		converted.Spec.To[0].Default.HTTP.RequestTimeout = &metav1.Duration{Duration: 90 * time.Minute}
	})
	given(time.Hour, 90*time.Minute)
	if err := s.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	// A call that is never answered ends with the timeout.
	s.change(t, converted, func() { converted.Spec.To[0].Default.HTTP.RequestTimeout = &metav1.Duration{Duration: time.Second} })
	given(0, time.Second)
	release := local.Hold()
	t.Cleanup(release)
	if _, err := callers.Zone(t.Context(), connection); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the call ended with %v", err)
	}
	release()

	// It is the policy that does it.
	if err := s.Delete(t.Context(), converted); err != nil {
		t.Fatal(err)
	}
	given(0, 0)
	// And the old entry would have done it as well.
	s.create(t, s.timeout(t, "old", s.tag("backend"), "4h"))
	given(3*time.Hour, 4*time.Hour)
}

// convert runs a policy through the command.
func (s *stage) convert(t testing.TB, p *kumav1alpha1.MeshTimeout) *kumav1alpha1.MeshTimeout {
	t.Helper()
	p.SetGroupVersionKind(schema.GroupVersionKind{Group: kumav1alpha1.GroupVersion.Group, Version: kumav1alpha1.GroupVersion.Version, Kind: "MeshTimeout"})
	text, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	result := harness.RunCommand(t, s.Cluster, "convert", "-f", file)
	if result.Code != done {
		t.Fatalf("convert ended with %d:\n%s", result.Code, result.Stderr)
	}
	var converted kumav1alpha1.MeshTimeout
	if err := yaml.Unmarshal([]byte(result.Stdout), &converted); err != nil {
		t.Fatalf("%v:\n%s", err, result.Stdout)
	}
	return &converted
}
