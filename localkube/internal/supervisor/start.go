package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/component"
)

// Progress is told what is being waited for, and of each step that is done.
type Progress struct{ Doing, Done func(what string) }

// start brings every component up that is not, and returns when the cluster
// can be used. It heals as well as starts: what runs is left alone.
func (s *Supervisor) start(ctx context.Context, progress Progress) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // stopped while it waited for its turn
	}
	err := s.startOnce(ctx, progress)
	// Somebody took a port between our look and the component's: take others.
	if errors.Is(err, errPortTaken) && !s.currentSettings().PinnedPort {
		progress.Done("a port was taken by another process meanwhile: choosing others")
		for _, c := range slices.Concat(s.istiodChildren(), s.children) {
			c.stop(time.Second)
		}
		if err := s.choosePorts(); err != nil {
			return err
		}
		return s.startOnce(ctx, progress)
	}
	return err
}

func (s *Supervisor) startOnce(ctx context.Context, progress Progress) error {
	settings := s.currentSettings()
	store, loops := s.children[:storeSize], s.children[storeSize:]

	if slices.ContainsFunc(store, isDown) {
		// They have been asking in vain, and would wait ever longer between two tries. A dead one keeps how it died.
		stopTogether(2*time.Second, slices.DeleteFunc(slices.Clone(loops), isDown))
	}
	if err := s.startChildren(progress, store); err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	if err := s.waitFor(ctx, client, progress, store, s.untilServed(settings.Profile)); err != nil {
		return err
	}
	progress.Done(fmt.Sprintf("API server ready on https://127.0.0.1:%d", settings.Ports.API))

	if err := s.startChildren(progress, loops); err != nil {
		return err
	}
	if err := s.waitFor(ctx, client, progress, s.children, untilUsable(settings)); err != nil {
		return err
	}
	if settings.Nodes > 0 {
		progress.Done(fmt.Sprintf("%d node(s) ready, and a Deployment became ready", settings.Nodes))
	}
	return s.reviveIstiods(ctx, client, progress)
}

// condition is tried until it holds.
type condition struct {
	what string
	try  func(context.Context, kubernetes.Interface) error
}

// untilServed has the API answer, and in it what should take effect while the
// controllers start.
func (s *Supervisor) untilServed(profile clusterdir.Profile) []condition {
	served := []condition{{"the API server", ready}}
	if profile == clusterdir.Hub {
		return served
	}
	served = append(served, condition{"its first objects", applyPodPolicy})
	if !s.child(component.Kwok).alive() {
		served = append(served, condition{"the nodes to be free", freeNodes})
	}
	return served
}

// untilUsable has the cluster do what it is for.
func untilUsable(settings clusterdir.Settings) []condition {
	account := condition{"namespaces to get their service account", defaultServiceAccount}
	if settings.Profile == clusterdir.Hub {
		return []condition{account}
	}
	name := fmt.Sprintf("%s-%x", probeLabel, time.Now().UnixNano())
	return []condition{
		account,
		{"the nodes", func(ctx context.Context, client kubernetes.Interface) error {
			return ensureNodes(ctx, client, settings.Nodes)
		}},
		{"a Deployment to become ready", func(ctx context.Context, client kubernetes.Interface) error {
			return probeDeployment(ctx, client, name)
		}},
		{"the annotations of pods to be checked", podPolicyWorks},
		{"the probe to be removed", removeProbes},
	}
}

func (s *Supervisor) startChildren(progress Progress, children []*child) error {
	for _, c := range children {
		if c.alive() {
			continue
		}
		before := c.Record()
		c.spec.args = append([]string{"component", before.Name, "--"}, component.Arguments(before.Name, s.dir, s.currentSettings())...)
		if err := c.start(); err != nil {
			return err
		}
		progress.Done(startedText(before))
	}
	return nil
}

func startedText(before clusterdir.Record) string {
	if before.State == clusterdir.Dead {
		return fmt.Sprintf("%s started again (it was %s)", before.Name, before.Detail)
	}
	return before.Name + " started"
}

// never is how long to wait for a cluster that starts on a busy machine; a component that dies ends it at once.
const never = 5 * time.Minute

var errPortTaken = errors.New("address already in use")

// waitFor has one condition after the other hold, and gives up at once when one
// of the components that they need dies. Others may be dead still, to be healed
// later.
func (s *Supervisor) waitFor(
	ctx context.Context, client kubernetes.Interface, progress Progress, needs []*child, conditions []condition,
) error {
	ctx, cancel := context.WithTimeout(ctx, Patient(never))
	defer cancel()
	for _, c := range needs {
		ended := c.whenEnded()
		go func() {
			select {
			case <-ended:
				cancel() // a try that hangs on it
			case <-ctx.Done():
			}
		}()
	}
	for _, c := range conditions {
		progress.Doing("waiting for " + c.what)
		for {
			err := c.try(ctx, client)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			if died := deathAmong(needs); died != nil {
				return died
			}
			if ctx.Err() != nil {
				return fmt.Errorf("waited for %s: %w (logs are in %s)", c.what, err, s.dir.Log("*"))
			}
		}
	}
	return nil
}

func deathAmong(children []*child) error {
	for _, c := range children {
		r := c.Record()
		if r.State != clusterdir.Dead {
			continue
		}
		tail := lastLines(r.Log, 15)
		err := fmt.Errorf("%s died while starting: %s; the last lines of %s:\n%s", r.Name, r.Detail, r.Log, tail)
		if strings.Contains(tail, errPortTaken.Error()) {
			return errors.Join(errPortTaken, err)
		}
		return err
	}
	return nil
}

func lastLines(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = slices.Clone(lines[max(0, len(lines)-n):])
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return strings.Join(lines, "\n")
}
