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
	"github.com/fairlead/fairlead/localkube/internal/pki"
)

// Progress is told of each step as it is finished.
type Progress func(step string)

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
		progress("a port was taken by another process meanwhile: choosing others")
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
	if err := s.startChildren(progress, store...); err != nil {
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
	if err := s.waitFor(ctx, "the API server to be ready", store, func(ctx context.Context) error {
		return ready(ctx, client)
	}); err != nil {
		return err
	}
	progress("API server ready on " + config.Host)

	if settings.Profile == clusterdir.Cluster {
		if err := s.waitFor(ctx, "the cluster to take its first objects", store, func(ctx context.Context) error {
			return s.prepareForPods(ctx, client)
		}); err != nil {
			return err
		}
	}
	if err := s.startChildren(progress, loops...); err != nil {
		return err
	}
	wait := func(what string, try func(context.Context) error) error { return s.waitFor(ctx, what, all, try) }
	if settings.Profile == clusterdir.Hub {
		err = wait("namespaces to get their service account", func(ctx context.Context) error {
			return defaultServiceAccount(ctx, client)
		})
	} else {
		err = awaitPods(client, settings.Nodes, wait)
	}
	if err != nil {
		return err
	}
	if settings.Nodes > 0 {
		progress(fmt.Sprintf("%d node(s) ready, and a Deployment became ready", settings.Nodes))
	}
	return s.reviveIstiods(ctx, client, progress)
}

// prepareForPods comes before the controllers: what it makes takes effect while
// they start.
func (s *Supervisor) prepareForPods(ctx context.Context, client kubernetes.Interface) error {
	if err := applyPodPolicy(ctx, client); err != nil {
		return err
	}
	if s.child(component.Kwok).alive() {
		return nil
	}
	return freeNodes(ctx, client)
}

// awaitPods returns when a Deployment can become ready.
func awaitPods(client kubernetes.Interface, nodes int, wait func(what string, try func(context.Context) error) error) error {
	probe := fmt.Sprintf("%s-%x", probeLabel, time.Now().UnixNano())
	for _, step := range []struct {
		what string
		try  func(context.Context) error
	}{
		{"the nodes to be made", func(ctx context.Context) error { return ensureNodes(ctx, client, nodes) }},
		{"a Deployment to become ready", func(ctx context.Context) error { return probeDeployment(ctx, client, probe) }},
		{"the annotations of pods to be checked", func(ctx context.Context) error { return podPolicyWorks(ctx, client) }},
		{"the probe to be removed", func(ctx context.Context) error { return removeProbes(ctx, client) }},
	} {
		if err := wait(step.what, step.try); err != nil {
			return err
		}
	}
	return nil
}

func (s *Supervisor) startChildren(progress Progress, names ...string) error {
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
		if before.State == clusterdir.Dead {
			progress(fmt.Sprintf("%s started again (it was %s)", name, before.Detail))
		} else {
			progress(name + " started")
		}
	}
	return nil
}

// patience with a cluster that starts on a busy machine.
const patience = 90 * time.Second

var errPortTaken = errors.New("address already in use")

// waitFor tries until it succeeds, and gives up at once when one of the
// components that it needs dies. Others may be dead still, to be healed later.
func (s *Supervisor) waitFor(ctx context.Context, what string, needs []string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if died := s.firstDead(needs); died != nil {
			return s.deathOf(*died)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w (logs are in %s)", what, err, s.dir.Log("*"))
		case <-time.After(50 * time.Millisecond):
		}
	}
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
