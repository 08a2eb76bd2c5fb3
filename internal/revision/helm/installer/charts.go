package installer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/internal/revision/helm/charts"
)

// Charts caches charts and versions of a source: an event must not cost a directory walk or a network call.
type Charts struct {
	source charts.Source
	now    func() time.Time

	mu       sync.Mutex
	loaded   map[chartKey]answer[*charts.Chart]
	versions answer[[]string]
}

type chartKey struct{ name, version string }

// answer is a value or error, and until when it is valid. After an error the value may be an earlier one.
type answer[T any] struct {
	value T
	err   error
	until time.Time
}

// failureTTL limits how often a source that fails is called.
const failureTTL = 15 * time.Second

// NewCharts caches the charts of a source.
func NewCharts(source charts.Source) *Charts {
	return &Charts{source: source, now: time.Now, loaded: map[chartKey]answer[*charts.Chart]{}}
}

// Load a chart of an exact version. The error is a *charts.NotFoundError when the source is known not to have it, and
// otherwise an *UnavailableError.
func (c *Charts) Load(ctx context.Context, name, version string) (*charts.Chart, error) {
	key := chartKey{name, version}
	c.mu.Lock()
	before := c.loaded[key]
	c.mu.Unlock()
	if c.now().Before(before.until) {
		return before.value, before.err
	}
	now := answer[*charts.Chart]{until: c.now().Add(c.source.Refresh())}
	now.value, now.err = c.source.Load(ctx, name, version)
	if now.err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if now.err != nil {
		now.until = c.now().Add(c.RetryInterval())
		if now.err = c.explain(ctx, version, now.err); before.value != nil {
			now.value, now.err = before.value, nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded[key] = now
	return now.value, now.err
}

// Forget a chart that was refused: it is loaded again after RetryInterval, for its source may have been repaired by then.
func (c *Charts) Forget(name, version string) {
	c.source.Forget(name, version)
	c.mu.Lock()
	defer c.mu.Unlock()
	key := chartKey{name, version}
	if kept, ok := c.loaded[key]; ok {
		if soon := c.now().Add(c.RetryInterval()); soon.Before(kept.until) {
			kept.until = soon
			c.loaded[key] = kept
		}
	}
}

// String names the source for people.
func (c *Charts) String() string { return c.source.String() }

func (c *Charts) explain(ctx context.Context, version string, err error) error {
	if known, listErr := c.Versions(ctx); listErr == nil {
		if _, unknown := charts.Resolve(version, known); unknown != nil {
			return unknown
		}
	}
	return &UnavailableError{err}
}

// Versions that there are charts of.
func (c *Charts) Versions(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	known := c.versions
	c.mu.Unlock()
	if c.now().Before(known.until) {
		return known.value, known.err
	}
	all, err := c.source.Versions(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// Sources have caches of their own; this one is for bursts of events and for sources that fail.
	known = answer[[]string]{all, err, c.now().Add(time.Second)}
	if err != nil {
		known.until = c.now().Add(c.RetryInterval())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions = known
	return all, err
}

// Has tells whether there are charts of a version; it assumes so when versions cannot be listed.
func (c *Charts) Has(ctx context.Context) func(version string) bool {
	known, err := c.Versions(ctx)
	return func(version string) bool { return err != nil || slices.Contains(known, version) }
}

// Refresh is how often to look for newer versions.
func (c *Charts) Refresh() time.Duration { return c.source.Refresh() }

// RetryInterval is how often to retry a chart that could not be loaded.
func (c *Charts) RetryInterval() time.Duration { return min(failureTTL, c.source.Refresh()) }
