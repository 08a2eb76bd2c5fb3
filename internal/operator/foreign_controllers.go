package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/internal/operator/foreign"
)

const (
	// foreignInterval is how often Deployments and leases of others are looked for. Objects and CRDs are looked at as well every sixth
	// time for a passage that holds, or that goes on beside traces, which is more often than foreign.WritesFor, and every thirtieth time
	// otherwise: that lists some objects of all kinds.
	foreignInterval  = 10 * time.Second
	foreignWhileHeld = 6
	foreignOtherwise = 30
	// firstLooks take a quarter of a minute, in which an API server that has just started serves all kinds.
	firstLooks = 5
)

// passageHold is why a passage holds.
type passageHold struct {
	passage  string
	system   foreign.System
	decision foreign.Decision
}

func (h passageHold) message() string { return h.decision.Message(h.system) }

func (h passageHold) equal(other passageHold) bool {
	return h.passage == other.passage && h.message() == other.message()
}

// observer looks for the controllers of another system.
type observer interface {
	Observe(ctx context.Context) (foreign.Observed, error)
	ObserveControllers(ctx context.Context) (foreign.Observed, error)
	Watch(ctx context.Context)
}

// holdReporter says on objects that a passage holds, and takes over what the other controller has left.
type holdReporter interface {
	Held(ctx context.Context, system foreign.System, message, action string) error
	Released(ctx context.Context, system foreign.System) error
	ReleaseFinalizers(ctx context.Context, system foreign.System) error
	ClaimGenerated(ctx context.Context, system foreign.System) error
}

// passageHolds knows which passages hold because of controllers of others.
type passageHolds struct {
	passages []Passage
	takeOver []string
	log      logr.Logger

	observers map[string]observer
	reporter  holdReporter
	// interval between two looks, and between two attempts at what has failed.
	interval time.Duration
	// unknown is what could not be read, by passage, as it was logged last.
	unknown map[string][]foreign.Unknown
	// unsure are the passages of which not everything could be read at the last look.
	unsure map[string]bool

	// reportDue asks for a report of the passages that hold.
	reportDue chan struct{}

	mu   sync.Mutex
	held []passageHold
	// waiting are the passages of which it is not known yet whether they hold.
	waiting map[string]bool
}

func newPassageHolds(ctx context.Context, config *rest.Config, passages []Passage, takeOver []string, log logr.Logger) (*passageHolds, error) {
	h := &passageHolds{passages: passages, takeOver: takeOver, log: log, interval: foreignInterval, observers: map[string]observer{}, unknown: map[string][]foreign.Unknown{},
		unsure: map[string]bool{}, waiting: map[string]bool{}, reportDue: make(chan struct{}, 1)}
	for _, p := range passages {
		observer, err := foreign.NewObserver(config, foreign.Of(p.Name), p.CRDs)
		if err != nil {
			return nil, err
		}
		h.observers[p.Name], h.waiting[p.Name] = observer, true
	}
	var err error
	h.reporter, err = foreign.NewReporter(ctx, config, log)
	return h, err
}

// current holds, none for a process that has no passages.
func (h *passageHolds) current() []passageHold {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.held)
}

// free are the passages that do not hold, and of which that is known.
func (h *passageHolds) free() []Passage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.passages), func(p Passage) bool {
		return h.waiting[p.Name] || findHold(h.held, p.Name) != nil
	})
}

func findHold(holds []passageHold, passage string) *passageHold {
	if i := slices.IndexFunc(holds, func(hold passageHold) bool { return hold.passage == passage }); i >= 0 {
		return &holds[i]
	}
	return nil
}

// look decides for every passage anew, the nth time. A passage of which not everything can be read goes on as it was, unless a controller
// is seen that acts. One that has not begun holds by what can be read, and otherwise waits.
func (h *passageHolds) look(ctx context.Context, n int) error {
	var held []passageHold
	var decided []string
	var errs []error
	before := h.current()
	for _, p := range h.passages {
		system, last := foreign.Of(p.Name), findHold(before, p.Name)
		seen, err := h.observe(ctx, p, n, last != nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("passage %s: %w", p.Name, err))
		} else {
			h.logUnknown(p.Name, seen.Unknown)
		}
		decision := foreign.Decide(system, seen, h.takesOver(p), time.Now())
		h.unsure[p.Name] = err != nil || seen.IsUnavailable()
		switch {
		case h.unsure[p.Name] && !decision.Acts && !(decision.Hold && h.waits(p)):
			if last != nil {
				held = append(held, *last)
			}
			continue
		case decision.Hold:
			held = append(held, passageHold{p.Name, system, decision})
		}
		decided = append(decided, p.Name)
	}
	h.logChanges(before, held)
	h.mu.Lock()
	h.held = held
	for _, name := range decided {
		delete(h.waiting, name)
	}
	h.mu.Unlock()
	return errors.Join(errs...)
}

// waits says whether a passage has not begun, because it is not known yet whether it holds.
func (h *passageHolds) waits(p Passage) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting[p.Name]
}

// firstLook looks a few times as long as some passages wait, before the others begin: when the passages that run become others, all of
// them start anew.
func (h *passageHolds) firstLook() func(context.Context) error {
	left := firstLooks
	return func(ctx context.Context) error {
		if err := h.look(ctx, 0); err != nil {
			return err
		}
		if waiting := h.undecided(); len(waiting) > 0 && left > 1 {
			left--
			return errNotYet{fmt.Errorf("the API server does not serve all kinds of the passages %s yet", strings.Join(waiting, ", "))}
		}
		return nil
	}
}

// observe looks for the controllers of a passage, the nth time, and sometimes at its objects: also if these could not be read last time,
// and before a passage goes on, because the other controller may have written them since.
func (h *passageHolds) observe(ctx context.Context, p Passage, n int, holds bool) (foreign.Observed, error) {
	every := foreignOtherwise
	if holds || h.takesOver(p) {
		every = foreignWhileHeld
	}
	if !h.unsure[p.Name] && n%every != 0 {
		seen, err := h.observers[p.Name].ObserveControllers(ctx)
		if err != nil || !holds || foreign.Decide(foreign.Of(p.Name), seen, h.takesOver(p), time.Now()).Hold {
			return seen, err
		}
	}
	return h.observers[p.Name].Observe(ctx)
}

func (h *passageHolds) takesOver(p Passage) bool { return slices.Contains(h.takeOver, p.Name) }

// watch starts the watches that later looks read, unless the operator may not list what they are about.
func (h *passageHolds) watch(ctx context.Context) {
	for name, observer := range h.observers {
		forbidden := func(u foreign.Unknown) bool { return u.IsOfControllers() && u.Cause == foreign.Forbidden }
		if !slices.ContainsFunc(h.unknown[name], forbidden) {
			observer.Watch(ctx)
		}
	}
}

// unknownTexts say what to do about a kind that cannot be read: another controller may act unseen.
var unknownTexts = map[foreign.UnknownCause]string{
	foreign.Forbidden: "cannot see whether a controller of another system acts: let the operator read this kind, as the chart does",
	foreign.Unavailable: "cannot see yet whether a controller of another system acts: the API server does not serve this kind now; " +
		"the passage goes on as it was, and waits if it has not begun",
	foreign.Failed: "cannot see whether a controller of another system acts: the API server cannot read this kind",
}

// logUnknown says once of each kind why it cannot be read.
func (h *passageHolds) logUnknown(passage string, unknown []foreign.Unknown) {
	for _, u := range unknown {
		same := func(logged foreign.Unknown) bool { return logged.Kind == u.Kind && logged.Cause == u.Cause }
		if !slices.ContainsFunc(h.unknown[passage], same) {
			h.log.Info(unknownTexts[u.Cause], "passage", passage, "kind", u.Kind, "error", u.Err)
		}
	}
	h.unknown[passage] = unknown
}

func (h *passageHolds) logChanges(before, held []passageHold) {
	for _, hold := range held {
		if !slices.ContainsFunc(before, hold.equal) {
			h.log.Info("passage holds: a controller of another system acts on its kinds, or may do so again; nothing is written", "passage", hold.passage,
				"reason", fairlead.ReasonForeignController, "seen", hold.message(), "action", hold.decision.Action)
		}
	}
	for _, hold := range before {
		if findHold(held, hold.passage) == nil {
			h.log.Info("passage goes on: no controller of another system acts on its kinds any more", "passage", hold.passage)
		}
	}
}

// keepReported reports the passages that hold, now and whenever that is due, until the context ends. Nothing waits for it: reports
// list and write all objects that start a passage.
func (h *passageHolds) keepReported(ctx context.Context) {
	for {
		h.report(ctx, h.current())
		select {
		case <-ctx.Done():
			return
		case <-h.reportDue:
		}
	}
}

// report says on objects that passages hold. That is not needed for holding, and is tried again.
func (h *passageHolds) report(ctx context.Context, held []passageHold) {
	for _, hold := range held {
		if err := h.reporter.Held(ctx, hold.system, hold.message(), hold.decision.Action); err != nil && ctx.Err() == nil {
			h.log.Error(err, "cannot say in the status of all objects that the passage holds", "passage", hold.passage)
		}
	}
}

// begin removes from objects that the passages hold, which go on now. What fails is tried again until the context ends.
func (h *passageHolds) begin(ctx context.Context, free []Passage) {
	h.retryEach(ctx, free, "cannot remove what says that the passage holds; trying again", func(ctx context.Context, p Passage) error {
		return h.reporter.Released(ctx, foreign.Of(p.Name))
	})
}

// takeOverLeft takes over what the other controllers of these passages have left, on the replica that leads. What fails is tried again
// until the context ends: what is deleted may wait for it. The channel of a passage is closed once Fairlead generates what the other
// controller has generated; a passage that is not taken over has none.
func (h *passageHolds) takeOverLeft(passages []Passage) (run manager.RunnableFunc, takenOver map[string]chan struct{}) {
	mine := slices.DeleteFunc(slices.Clone(passages), func(p Passage) bool { return !h.takesOver(p) })
	takenOver = map[string]chan struct{}{}
	for _, p := range mine {
		takenOver[p.Name] = make(chan struct{})
	}
	return func(ctx context.Context) error {
		claimed := map[string]bool{}
		h.retryEach(ctx, mine, "cannot take over all that the other controller has left; trying again", func(ctx context.Context, p Passage) error {
			system := foreign.Of(p.Name)
			finalizers, claim := h.reporter.ReleaseFinalizers(ctx, system), h.reporter.ClaimGenerated(ctx, system)
			if claim == nil && !claimed[p.Name] {
				claimed[p.Name] = true
				close(takenOver[p.Name])
			}
			return errors.Join(finalizers, claim)
		})
		return nil
	}, takenOver
}

// retryEach does something for each passage until that has succeeded or the context ends.
func (h *passageHolds) retryEach(ctx context.Context, passages []Passage, failure string, do func(context.Context, Passage) error) {
	for failed := passages; ; {
		failed = slices.DeleteFunc(slices.Clone(failed), func(p Passage) bool {
			err := do(ctx, p)
			if err != nil && ctx.Err() == nil {
				h.log.Info(failure, "passage", p.Name, "error", err.Error())
			}
			return err == nil
		})
		if len(failed) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.interval):
		}
	}
}

// awaitChange returns when other passages than these are free.
func (h *passageHolds) awaitChange(ctx context.Context, free []Passage) {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.interval):
		}
		before := h.current()
		if err := h.look(ctx, n); err != nil && ctx.Err() == nil {
			h.log.V(1).Info("cannot look for other controllers", "error", err.Error())
		}
		if !slices.Equal(namesOf(h.free()), namesOf(free)) {
			return // What has begun ends, and the next round begins with a report.
		}
		if n%foreignWhileHeld == 0 || !slices.EqualFunc(before, h.current(), passageHold.equal) {
			select {
			case h.reportDue <- struct{}{}:
			default: // One is due already.
			}
		}
	}
}

// runFree runs the passages that do not hold, and starts anew whenever these become others: a passage that holds has no lease, no
// webhook, no CRD and no controller.
func runFree(ctx context.Context, restConfig *rest.Config, options Options, holds *passageHolds, ready *readiness, monitor *leaseMonitor, log logr.Logger) error {
	if err := retryTransient(ctx, log, startBackoff(), "reach the API server", reachServer(restConfig)); err != nil {
		return err
	}
	ready.waitingFor("a look for controllers of other systems")
	if err := retryTransient(ctx, log, startBackoff(), "look for controllers of other systems", holds.firstLook()); err != nil {
		return err
	}
	holds.watch(ctx)
	for {
		free := holds.free()
		err := runRound(ctx, free, restConfig, options, holds, ready, monitor, log)
		if ctx.Err() != nil || err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		log.Info("the passages that can run have changed", "before", strings.Join(namesOf(free), ","), "now", strings.Join(namesOf(holds.free()), ","))
	}
}

func runRound(ctx context.Context, free []Passage, restConfig *rest.Config, options Options, holds *passageHolds, ready *readiness,
	monitor *leaseMonitor, log logr.Logger,
) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	ready.restart()
	monitor.restart()
	group.Go(func() error {
		defer end()
		holds.awaitChange(ctx, free)
		return nil
	})
	group.Go(func() error {
		holds.keepReported(ctx)
		return nil
	})
	group.Go(func() error {
		holds.begin(ctx, free) // beside the passages: the webhook of one may be needed to read its objects
		return nil
	})
	group.Go(func() error {
		defer end()
		if len(free) == 0 {
			ready.ready()
			log.Info("ready")
			<-ctx.Done()
			return nil
		}
		return runPassages(ctx, group, restConfig, options, free, holds, ready, monitor, log)
	})
	return group.Wait()
}

// undecided are the passages of which it is not known yet whether they hold, none for a process that has no passages.
func (h *passageHolds) undecided() []string {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.waiting))
}

// notHeld are the passages that do not hold, none for a process that has no passages.
func (h *passageHolds) notHeld() []string {
	if h == nil {
		return nil
	}
	held := h.current()
	return slices.DeleteFunc(namesOf(h.passages), func(name string) bool { return findHold(held, name) != nil })
}

// describe has a line for each passage that does not run.
func (h *passageHolds) describe() string {
	var text strings.Builder
	for _, hold := range h.current() {
		fmt.Fprintf(&text, "passage %s: holds, %s: %s\n", hold.passage, fairlead.ReasonForeignController, hold.message())
	}
	for _, name := range h.undecided() {
		fmt.Fprintf(&text, "passage %s: waits until the operator can see whether a %s acts; the log names the kinds that cannot be read\n", name, foreign.Of(name).Name)
	}
	return text.String()
}

var passageHeld = prometheus.NewDesc("fairlead_passage_held",
	"1 for each passage that holds because of a controller of another system", []string{"passage", "reason", "system"}, nil)

// Describe implements prometheus.Collector.
func (h *passageHolds) Describe(out chan<- *prometheus.Desc) { out <- passageHeld }

// Collect implements prometheus.Collector.
func (h *passageHolds) Collect(out chan<- prometheus.Metric) {
	for _, hold := range h.current() {
		out <- prometheus.MustNewConstMetric(passageHeld, prometheus.GaugeValue, 1, hold.passage, fairlead.ReasonForeignController, hold.system.Name)
	}
}

// validateTakeOver refuses passages that are not run.
func validateTakeOver(takeOver, passages []string) error {
	for _, name := range takeOver {
		if known := cmp.Or(strings.Join(passages, ", "), strings.Join(Names(), ", ")); !slices.Contains(strings.Split(known, ", "), name) {
			return fmt.Errorf("--take-over %s is not one of the passages to run: %s", name, known)
		}
	}
	return nil
}
