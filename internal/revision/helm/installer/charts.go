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
	loaded   map[chartKey]loadedChart
	versions knownVersions
}

type knownVersions struct {
	all   []string
	err   error
	until time.Time
}

type chartKey struct{ name, version string }

// loadedChart is a cached chart or error, and until when it is valid. After an error it may be an earlier chart.
type loadedChart struct {
	chart *charts.Chart
	err   error
	until time.Time
}

// failureTTL limits how often a source that fails is called.
const failureTTL = 15 * time.Second

// NewCharts caches the charts of a source.
func NewCharts(source charts.Source) *Charts {
	return &Charts{source: source, now: time.Now, loaded: map[chartKey]loadedChart{}}
}

// Load a chart of an exact version. The error is a *charts.NotFoundError when the source is known not to have it, and
// otherwise an *UnavailableError.
func (c *Charts) Load(ctx context.Context, name, version string) (*charts.Chart, error) {
	key := chartKey{name, version}
	before, ok := c.cachedChart(key)
	if ok && c.now().Before(before.until) {
		return before.chart, before.err
	}
	answer := loadedChart{until: c.now().Add(c.source.Refresh())}
	answer.chart, answer.err = c.source.Load(ctx, name, version)
	if answer.err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if answer.err != nil {
		answer.until = c.now().Add(min(failureTTL, c.source.Refresh()))
		if answer.err = c.explain(ctx, version, answer.err); before.chart != nil {
			answer.chart, answer.err = before.chart, nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded[key] = answer
	return answer.chart, answer.err
}

func (c *Charts) cachedChart(key chartKey) (loadedChart, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	loaded, ok := c.loaded[key]
	return loaded, ok
}

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
		return known.all, known.err
	}
	all, err := c.source.Versions(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// Sources have caches of their own; this one is for bursts of events and for sources that fail.
	known = knownVersions{all, err, c.now().Add(time.Second)}
	if err != nil {
		known.until = c.now().Add(min(failureTTL, c.source.Refresh()))
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
