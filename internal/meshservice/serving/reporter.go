package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const (
	// writeInterval is how often a report is written at most.
	writeInterval = time.Second
	// rewriteEvery is how many renewals there are until all reports are written again: somebody may have deleted one.
	rewriteEvery = 12
	// writeTimeout is how long the writes of all reports may take before they are tried again.
	writeTimeout = 10 * time.Second
	// stopTimeout is how long a process that ends may take to delete its reports.
	stopTimeout = 3 * time.Second
)

// fieldOwner is the field manager of reports.
const fieldOwner = "fairlead/meshservice-serving"

// Source is what a process knows of its proxies.
type Source struct {
	// Connection returns the xDS state of a proxy, and OnConnection registers a function to call when one changes.
	Connection   func(model.ProxyID) model.Connection
	OnConnection func(func(model.ProxyID))
	// Consumer returns the consumer of a proxy, and Sent the consumers of a mesh that are switched in the published
	// configurations, and false before there are any.
	Consumer func(model.ProxyID) string
	Sent     func(mesh string) (map[string]bool, bool)
	// Recorded returns the consumers of a mesh that are switched by its MeshConsumerSlices, and OnSwitched registers a function
	// to call when configurations with other switched consumers are published.
	Recorded   func(mesh string) map[string]bool
	OnSwitched func(func(mesh string))
}

// Reporter is a runnable that writes the reports of a process.
type Reporter struct {
	replica string
	client  client.Client
	source  Source
	log     logr.Logger
	changed chan struct{}

	mu sync.Mutex
	// dirty are the proxies whose connection may have changed, and switched the meshes of which other consumers are switched.
	dirty    map[model.ProxyID]bool
	switched map[string]bool

	// shards are the states of connected proxies, and stale those that differ from what is written.
	shards   [shardCount]map[model.ProxyID]state
	stale    [shardCount]bool
	exists   [shardCount]bool
	recorded map[string]string
}

// NewReporter returns a reporter for a process of that name, which must be the name of no other.
func NewReporter(c client.Client, replica string, source Source, log logr.Logger) *Reporter {
	r := &Reporter{
		replica: replica, client: c, source: source, log: log, changed: make(chan struct{}, 1), dirty: map[model.ProxyID]bool{},
		switched: map[string]bool{}, recorded: map[string]string{},
	}
	for i := range r.shards {
		r.shards[i] = map[model.ProxyID]state{}
	}
	source.OnConnection(func(id model.ProxyID) {
		r.mu.Lock()
		r.dirty[id] = true
		r.mu.Unlock()
		r.notify()
	})
	source.OnSwitched(func(mesh string) {
		r.mu.Lock()
		r.switched[mesh] = true
		r.mu.Unlock()
		r.notify()
	})
	return r
}

func (r *Reporter) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Start writes reports until the context ends, and then deletes them.
func (r *Reporter) Start(ctx context.Context) error {
	write, renew := time.NewTicker(writeInterval), time.NewTicker(renewInterval)
	defer write.Stop()
	defer renew.Stop()
	r.stale[0] = true
	renewals := 0
	for {
		select {
		case <-ctx.Done():
			r.deleteAll()
			return nil
		case <-r.changed:
			// States are kept as they change, also those that last for less than the interval of writes.
			r.update()
			continue
		case <-renew.C:
			r.stale[0] = true
			if renewals++; renewals%rewriteEvery == 0 {
				for i := range r.stale {
					r.stale[i] = true
				}
			}
			continue
		case <-write.C:
		}
		next := writeInterval
		if err := r.write(ctx); err != nil && ctx.Err() == nil {
			next = renewInterval
			r.log.Error(err, "writing MeshServingReports failed and is retried", "after", next.String())
		}
		write.Reset(next)
	}
}

// update takes the states of proxies that may have changed.
func (r *Reporter) update() {
	r.mu.Lock()
	dirty, switched := r.dirty, r.switched
	r.dirty, r.switched = map[model.ProxyID]bool{}, map[string]bool{}
	r.mu.Unlock()
	for mesh := range switched {
		r.updateRecorded(mesh)
	}
	if len(switched) > 0 {
		// A switch may leave a configuration as it is, which nobody acknowledges again.
		for _, shard := range r.shards {
			for id := range shard {
				if switched[id.Mesh] {
					dirty[id] = true
				}
			}
		}
	}
	for id := range dirty {
		// Sent first: what it says is in the configuration that the connection is about.
		var of fairleadv1alpha1.Destinations
		if sent, published := r.source.Sent(id.Mesh); published {
			of = destinationsOf(sent[r.source.Consumer(id)])
		}
		shard := shardOf(id)
		before, known := r.shards[shard][id]
		connection := r.source.Connection(id)
		if !connection.Connected {
			if known {
				delete(r.shards[shard], id)
				r.stale[shard] = true
			}
			continue
		}
		if now := before.next(connection, of); !known || now != before {
			r.shards[shard][id] = now
			r.stale[shard] = true
		}
	}
}

func (r *Reporter) updateRecorded(mesh string) {
	now := digest(r.source.Recorded(mesh))
	if r.recorded[mesh] == now {
		return
	}
	if r.recorded[mesh] = now; now == "" {
		delete(r.recorded, mesh)
	}
	r.stale[0] = true
}

// write writes the reports that differ. The first one is always there, and says that the process runs.
func (r *Reporter) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for i := range r.shards {
		if !r.stale[i] || i > 0 && !r.exists[i] && len(r.shards[i]) == 0 {
			continue
		}
		report := r.report(i)
		if err := r.put(ctx, i, report); err != nil {
			return fmt.Errorf("write MeshServingReport %s: %w", report.Name, err)
		}
		r.stale[i], r.exists[i] = false, true
	}
	return nil
}

func (r *Reporter) report(shard int) *fairleadv1alpha1.MeshServingReport {
	report := &fairleadv1alpha1.MeshServingReport{
		ObjectMeta: metav1.ObjectMeta{
			Name: shardName(r.replica, shard), Labels: map[string]string{kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy},
		},
		Replica: r.replica, RenewTime: metav1.NowMicro(), Recorded: map[string]string{}, Proxies: listProxies(r.shards[shard]),
	}
	report.Connected = int32(len(report.Proxies))
	if shard == 0 {
		report.Recorded = r.recorded
	}
	return report
}

// change is one of a JSON patch.
type change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// put creates a report or replaces its content. No other process writes it, so there is nothing to read.
func (r *Reporter) put(ctx context.Context, shard int, report *fairleadv1alpha1.MeshServingReport) error {
	owner := client.FieldOwner(fieldOwner)
	if r.exists[shard] {
		var changes []change
		for path, value := range map[string]any{
			"/renewTime": report.RenewTime, "/recorded": report.Recorded, "/connected": report.Connected, "/proxies": report.Proxies,
		} {
			changes = append(changes, change{"add", path, value})
		}
		patch, err := json.Marshal(changes)
		if err != nil {
			return err
		}
		err = r.client.Patch(ctx, &fairleadv1alpha1.MeshServingReport{ObjectMeta: metav1.ObjectMeta{Name: report.Name}},
			client.RawPatch(types.JSONPatchType, patch), owner)
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The operator has taken this process to have ended, and may have deleted the others as well.
		for i := range r.exists {
			r.exists[i], r.stale[i] = false, true
		}
	}
	err := r.client.Create(ctx, report, owner)
	if apierrors.IsAlreadyExists(err) && !r.exists[shard] {
		// An earlier attempt has created it, and its answer was lost.
		r.exists[shard] = true
		return r.put(ctx, shard, report)
	}
	return err
}

// deleteAll deletes the reports of a process that ends, so that nobody waits for it.
func (r *Reporter) deleteAll() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var deletions errgroup.Group
	for i, exists := range r.exists {
		if !exists {
			continue
		}
		deletions.Go(func() error {
			report := &fairleadv1alpha1.MeshServingReport{ObjectMeta: metav1.ObjectMeta{Name: shardName(r.replica, i)}}
			return client.IgnoreNotFound(r.client.Delete(ctx, report))
		})
	}
	if err := deletions.Wait(); err != nil {
		r.log.Error(err, "deleting MeshServingReports failed, and they expire")
	}
}
