package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/component"
	"github.com/fairlead/fairlead/localkube/internal/pki"
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
	all := component.Of(settings.Profile)
	store, loops := all[:2], all[2:]

	if !s.alive(store) {
		// They have been asking in vain, and would wait ever longer between two tries.
		s.stopChildren(loops, 2*time.Second)
	}
	if err := s.startChildren(progress, store); err != nil {
		return err
	}
	config, err := pki.AdminConfig(s.dir)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := s.waitFor(ctx, progress, store, s.untilServed(client)); err != nil {
		return err
	}
	progress.Done("API server ready on " + config.Host)

	if err := s.startChildren(progress, loops); err != nil {
		return err
	}
	if err := s.waitFor(ctx, progress, all, untilUsable(client, settings)); err != nil {
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
	try  func(context.Context) error
}

// untilServed has the API answer, and in it what should take effect while the
// controllers start.
func (s *Supervisor) untilServed(client kubernetes.Interface) []condition {
	served := []condition{{"the API server", func(ctx context.Context) error { return ready(ctx, client) }}}
	if s.currentSettings().Profile == clusterdir.Hub {
		return served
	}
	served = append(served, condition{"its first objects", func(ctx context.Context) error { return applyPodPolicy(ctx, client) }})
	if !s.child(component.Kwok).alive() {
		served = append(served, condition{"the nodes to be free", func(ctx context.Context) error { return freeNodes(ctx, client) }})
	}
	return served
}

// untilUsable has the cluster do what it is for.
func untilUsable(client kubernetes.Interface, settings clusterdir.Settings) []condition {
	if settings.Profile == clusterdir.Hub {
		return []condition{{"namespaces to get their service account", func(ctx context.Context) error {
			return defaultServiceAccount(ctx, client)
		}}}
	}
	probe := fmt.Sprintf("%s-%x", probeLabel, time.Now().UnixNano())
	return []condition{
		{"the nodes", func(ctx context.Context) error { return ensureNodes(ctx, client, settings.Nodes) }},
		{"a Deployment to become ready", func(ctx context.Context) error { return probeDeployment(ctx, client, probe) }},
		{"the annotations of pods to be checked", func(ctx context.Context) error { return podPolicyWorks(ctx, client) }},
		{"the probe to be removed", func(ctx context.Context) error { return removeProbes(ctx, client) }},
	}
}

func (s *Supervisor) alive(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !s.child(name).alive() })
}

func (s *Supervisor) stopChildren(names []string, grace time.Duration) {
	var all sync.WaitGroup
	for _, name := range names {
		if c := s.child(name); c.alive() { // a dead one keeps how it died
			all.Go(func() { c.stop(grace) })
		}
	}
	all.Wait()
}

func (s *Supervisor) startChildren(progress Progress, names []string) error {
	for _, name := range names {
		c := s.child(name)
		if c.alive() {
			continue
		}
		before := c.Record()
		c.spec.args = append([]string{"component", name, "--"}, component.Arguments(name, s.dir, s.currentSettings())...)
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

// patience with a cluster that starts on a busy machine; a component that dies ends it at once.
const patience = 5 * time.Minute

var errPortTaken = errors.New("address already in use")

// waitFor has one condition after the other hold, and gives up at once when one
// of the components that they need dies. Others may be dead still, to be healed
// later.
func (s *Supervisor) waitFor(ctx context.Context, progress Progress, needs []string, conditions []condition) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range needs {
		ended := s.child(name).whenEnded()
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
			err := c.try(ctx)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			if died := s.firstDead(needs); died != nil {
				return s.deathOf(*died)
			}
			if ctx.Err() != nil {
				return fmt.Errorf("waited for %s: %w (logs are in %s)", c.what, err, s.dir.Log("*"))
			}
		}
	}
	return nil
}

func (s *Supervisor) firstDead(names []string) *clusterdir.Record {
	for _, name := range names {
		if r := s.child(name).Record(); r.State == clusterdir.Dead {
			return &r
		}
	}
	return nil
}

func (s *Supervisor) deathOf(r clusterdir.Record) error {
	tail := lastLines(r.Log, 15)
	err := fmt.Errorf("%s died while starting: %s; the last lines of %s:\n%s", r.Name, r.Detail, r.Log, tail)
	if strings.Contains(tail, errPortTaken.Error()) {
		return errors.Join(errPortTaken, err)
	}
	return err
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
