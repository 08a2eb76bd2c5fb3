package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

const (
	// remoteRefresh is far below how often Istio is released, and far above what anybody would call a burden.
	remoteRefresh = 10 * time.Minute
	// fetchLimit bounds a download, whoever asks for it.
	fetchLimit = time.Minute
)

// origin is where charts are downloaded from.
type origin interface {
	String() string
	versions(ctx context.Context) ([]string, error)
	// archive downloads a chart and checks it against the digest that the origin has for it.
	archive(ctx context.Context, name, version string) ([]byte, error)
}

// remote is a source that downloads each chart once and keeps it.
//
// An answer about versions holds for as long as Refresh says, in which nobody is asked again; after that, a source
// that does not answer is an error. A chart that is in the cache is loaded without asking anybody. What it was when it
// was first downloaded is what it stays: a revision must not change under its name, even if the source changes its mind.
type remote struct {
	origin
	cache   cache
	now     func() time.Time
	flights singleflight.Group
	memory  chartCache

	mu       sync.Mutex
	answer   []string
	answered time.Time
}

func newRemote(from origin, cache cache) *remote {
	return &remote{origin: from, cache: cache, now: time.Now}
}

func (r *remote) Refresh() time.Duration { return remoteRefresh }

func (r *remote) Versions(ctx context.Context) ([]string, error) {
	answer, err := share(ctx, &r.flights, "versions", func(ctx context.Context) ([]string, error) {
		if answer, fresh := r.lastAnswer(); fresh {
			return answer, nil
		}
		asked := r.now()
		names, err := r.versions(ctx)
		if err != nil {
			return nil, err
		}
		answer := newestFirst(names)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answer, r.answered = answer, asked
		return answer, nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s for the versions of Istio: %w", r, err)
	}
	return slices.Clone(answer), nil
}

func (r *remote) lastAnswer() (answer []string, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer, r.now().Sub(r.answered) < remoteRefresh
}

func (r *remote) Load(ctx context.Context, name, version string) (*Chart, error) {
	if err := checkAsked(name, version); err != nil {
		return nil, fmt.Errorf("load a chart from %s: %w", r, err)
	}
	key := name + " " + version
	c, err := share(ctx, &r.flights, key, func(ctx context.Context) (*Chart, error) {
		if c := r.memory.get(key); c != nil {
			return c, nil
		}
		c, err := r.load(ctx, name, version)
		if err == nil {
			r.memory.set(key, c)
		}
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("load chart %s %s from %s: %w", name, version, r, err)
	}
	return c.copy(), nil
}

func (r *remote) load(ctx context.Context, name, version string) (*Chart, error) {
	first := r.cache.digest(r.String(), name, version)
	if archive := r.cache.archive(first); archive != nil {
		return parseArchive(archive)
	}
	archive, err := r.archive(ctx, name, version)
	if err != nil {
		return nil, err
	}
	c, err := parseArchive(archive)
	if err != nil {
		return nil, err
	}
	if first != "" && c.Digest != first {
		return nil, fmt.Errorf("its digest was %s and is now %s, and a chart must not change under its version; "+
			"to take the new one, remove %s", first, c.Digest,
			r.cache.recordPath(record{Source: r.String(), Chart: name, Version: version}))
	}
	if err := r.cache.keep(r.String(), name, version, archive); err != nil {
		logr.FromContextOrDiscard(ctx).Info("a chart was downloaded, but cannot be kept for the next start; "+
			"set --chart-cache-dir to a directory that can be written", "chart", name, "version", version, "error", err.Error())
	}
	return c, nil
}

func parseArchive(archive []byte) (*Chart, error) {
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("the download is not a chart: %w", err)
	}
	return &Chart{Chart: c, Digest: digestOf(archive)}, nil
}

// share does only once what several ask for at the same time. It goes on when one of them gives up, for the sake of the
// others, and so has a limit of its own.
func share[T any](ctx context.Context, flights *singleflight.Group, key string, do func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, gaveUp(ctx)
	}
	done := flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchLimit)
		defer cancel()
		return do(ctx)
	})
	select {
	case <-ctx.Done():
		return none, gaveUp(ctx)
	case result := <-done:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	}
}

func gaveUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &unreachable{fmt.Errorf("no answer in time: %w", ctx.Err())}
	}
	return ctx.Err()
}
