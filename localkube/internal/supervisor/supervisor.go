// Package supervisor is the background process of one cluster: it starts the
// components, notes how each ends, carries the egress proxy, and is asked for
// everything through a socket in the cluster's directory.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/component"
	"github.com/fairlead/fairlead/localkube/internal/egress"
	"github.com/fairlead/fairlead/localkube/internal/pki"
)

// ErrAlreadyRunning means that another supervisor holds the directory.
var ErrAlreadyRunning = errors.New("another localkube runs this cluster")

// Self is the supervisor's own name among the processes of its cluster.
const Self = "localkube"

const storeSize = 2

// Supervisor of one cluster.
type Supervisor struct {
	dir  clusterdir.Dir
	log  *slog.Logger
	self clusterdir.Record

	// saving keeps an older state from being written over a newer one.
	saving sync.Mutex
	// starting lets one start, or the stop, happen at a time.
	starting sync.Mutex
	quit     context.CancelFunc
	egress   *egress.Proxy

	mu       sync.Mutex
	settings clusterdir.Settings
	children []*child // in the order they are started; the first storeSize are etcd and the API server
	istiods  map[string]*istiod
}

// Run supervises until it is asked to stop, ctx ends, or the process that it
// was tied to is gone.
func Run(ctx context.Context, dir clusterdir.Dir, until int32) error {
	if err := os.Chdir(string(dir)); err != nil {
		return err
	}
	release, err := hold(ctx, dir)
	if err != nil {
		return err
	}
	defer release()

	EndLeftovers(dir, 5*time.Second)
	settings, err := dir.LoadSettings()
	if err != nil {
		return err
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	s := &Supervisor{
		dir:      dir,
		log:      slog.New(slog.NewTextHandler(os.Stderr, nil)),
		self:     ownRecord(dir),
		quit:     quit,
		settings: settings,
		istiods:  map[string]*istiod{},
	}
	if err := s.prepare(); err != nil {
		return err
	}
	s.saveRecords()
	stopListening, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer stopListening()
	go s.watchIstiods(ctx)
	if until != 0 {
		go s.endWith(ctx, until)
	}

	<-ctx.Done()
	s.stopAll()
	return nil
}

// hold takes the directory for this supervisor. Those who only look whether it
// is taken hold it for a moment too, and are waited for.
func hold(ctx context.Context, dir clusterdir.Dir) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lock := flock.New(dir.Lock())
	held, err := lock.TryLockContext(ctx, 5*time.Millisecond)
	if held {
		return func() { _ = lock.Close() }, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, ErrAlreadyRunning
	}
	return nil, fmt.Errorf("lock %s: %w", dir.Lock(), err)
}

func ownRecord(dir clusterdir.Dir) clusterdir.Record {
	now, pid := time.Now(), int32(os.Getpid())
	return clusterdir.Record{
		Name: Self, Log: dir.Log(Self), State: clusterdir.Running,
		PID: pid, Created: createdAt(pid), StartedAt: &now,
	}
}

// prepare writes what the components read, and makes their children, unstarted.
func (s *Supervisor) prepare() error {
	if err := pki.Ensure(s.dir); err != nil {
		return err
	}
	if err := component.WriteFiles(s.dir); err != nil {
		return err
	}
	if err := s.choosePorts(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, name := range component.Of(s.settings.Profile) {
		s.children = append(s.children, newChild(spec{
			name: name,
			path: self,
			dir:  string(s.dir), // the API server finds the egress socket relative to it
			log:  s.dir.Log(name),
		}, s.saveRecords))
	}
	return nil
}

// choosePorts keeps those of the last start that are still free.
func (s *Supervisor) choosePorts() error {
	now := s.currentSettings()
	ports, err := keepOrChoose(now.Ports, now.PinnedPort, isFree)
	if err != nil {
		return err
	}
	if err := s.changeSettings(func(settings *clusterdir.Settings) { settings.Ports = ports }); err != nil {
		return err
	}
	return pki.WriteKubeconfigs(s.dir, ports.API)
}

// listen serves the control socket and the egress proxy; ctx ends what they are
// asked for.
func (s *Supervisor) listen(ctx context.Context) (stop func(), err error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	s.egress = &egress.Proxy{Resolve: egress.ByService(client, s.serves), Log: s.log.With("part", "egress")}

	var servers []*http.Server
	for socket, handler := range map[string]http.Handler{
		clusterdir.ControlSocket: s.control(),
		clusterdir.EgressSocket:  s.egress,
	} {
		_ = os.Remove(socket) // of a supervisor that was killed; the lock says it is gone
		listener, err := net.Listen("unix", socket)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", socket, err)
		}
		server := &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 10 * time.Second,
			BaseContext:       func(net.Listener) context.Context { return ctx },
		}
		servers = append(servers, server)
		go func() { _ = server.Serve(listener) }()
	}
	return func() {
		for _, server := range servers {
			_ = server.Close()
		}
	}, nil
}

// endWith ends the cluster when the process that it was started for is gone. One look is not enough: createdAt may read the uptime and
// then the clock, and a stall between them gives a wrong time.
func (s *Supervisor) endWith(ctx context.Context, pid int32) {
	born, again := int64(0), createdAt(pid)
	for tries := 0; !sameBirth(born, again) && tries < 5; tries++ {
		born, again = again, createdAt(pid)
	}
	for gone := 0; gone < 3; {
		if gone++; sameBirth(createdAt(pid), born) {
			gone = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
	s.log.Info("the process that this cluster was started for is gone", "pid", pid)
	s.quit()
}

// stopAll ends what uses the API server, then the API server, then etcd.
func (s *Supervisor) stopAll() {
	s.starting.Lock()
	defer s.starting.Unlock()

	for _, i := range s.listIstiods() {
		i.forget()
	}
	stopTogether(2*time.Second, slices.Concat(s.istiodChildren(), s.children[storeSize:]))
	// Its graceful end waits for watches to run out; nothing is lost without.
	s.child(component.APIServer).stop(time.Second)
	s.child(component.Etcd).stop(3 * time.Second)

	s.mu.Lock()
	now := time.Now()
	s.self.State, s.self.EndedAt = clusterdir.Stopped, &now
	s.mu.Unlock()
	s.saveRecords()
}

func (s *Supervisor) child(name string) *child {
	i := slices.IndexFunc(s.children, func(c *child) bool { return c.spec.name == name })
	return s.children[i]
}

func (s *Supervisor) serves() []clusterdir.Serve {
	serves := slices.Clone(s.currentSettings().Serves)
	for _, i := range s.listIstiods() {
		serves = append(serves, i.serves()...)
	}
	return serves
}

// records of every process, in the order they are started.
func (s *Supervisor) records() []clusterdir.Record {
	s.mu.Lock()
	records := []clusterdir.Record{s.self}
	s.mu.Unlock()
	for _, c := range s.children {
		records = append(records, c.Record())
	}
	for _, i := range s.listIstiods() {
		records = append(records, i.record())
	}
	return records
}

func (s *Supervisor) saveRecords() {
	s.saving.Lock()
	defer s.saving.Unlock()
	if err := s.dir.SaveRecords(s.records()); err != nil {
		s.log.Error("save records", "err", err)
	}
}

func (s *Supervisor) currentSettings() clusterdir.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// changeSettings keeps a change before anyone acts on it.
func (s *Supervisor) changeSettings(change func(*clusterdir.Settings)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.settings
	changed.Serves, changed.Istiods = slices.Clone(changed.Serves), slices.Clone(changed.Istiods)
	change(&changed)
	if err := s.dir.SaveSettings(changed); err != nil {
		return err
	}
	s.settings = changed
	return nil
}
