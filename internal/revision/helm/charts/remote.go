package charts

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	// remoteRefresh is far below the release interval of Istio, and causes negligible load.
	remoteRefresh = 10 * time.Minute
	// fetchLimit bounds a download.
	fetchLimit = time.Minute
)

// origin is where charts are downloaded from.
type origin interface {
	String() string
	versions(ctx context.Context) ([]string, error)
	// archive downloads a chart, checks it against the digest that the origin has for it, and verifies its signatures.
	archive(ctx context.Context, name, version string) ([]byte, error)
}

// remote is a source that downloads each chart once and keeps it.
//
// The list of versions is cached for Refresh; after that, a source that does not respond is an error. A chart in the cache is
// loaded without a request, and never changes: a revision must not change under its name, even if the source does.
type remote struct {
	origin
	verification verification

	cache  cache
	now    func() time.Time
	calls  singleflight.Group
	loaded sync.Map // of *Chart, by key

	// The call for versions has these to itself: calls with the same key do not run at the same time.
	knownVersions []string
	listedAt      time.Time
}

func (r *remote) Refresh() time.Duration { return remoteRefresh }

func (r *remote) Versions(ctx context.Context) ([]string, error) {
	answer, err := shareCall(ctx, &r.calls, "versions", func(ctx context.Context) ([]string, error) {
		asked := r.now()
		if asked.Sub(r.listedAt) < remoteRefresh {
			return r.knownVersions, nil
		}
		names, err := r.versions(ctx)
		if err != nil {
			return nil, err
		}
		r.knownVersions, r.listedAt = newestFirst(names), asked
		return r.knownVersions, nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s for the versions of Istio: %w", r, err)
	}
	return slices.Clone(answer), nil
}

func (r *remote) Load(ctx context.Context, name, version string) (*Chart, error) {
	if err := validateChart(name, version); err != nil {
		return nil, fmt.Errorf("load a chart from %s: %w", r, err)
	}
	key := name + " " + version
	c, err := shareCall(ctx, &r.calls, key, func(ctx context.Context) (*Chart, error) {
		if kept, ok := r.loaded.Load(key); ok {
			return kept.(*Chart), nil
		}
		c, err := r.load(ctx, name, version)
		if err == nil {
			r.loaded.Store(key, c)
		}
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("load chart %s %s from %s: %w", name, version, r, err)
	}
	return c, nil
}

func (r *remote) load(ctx context.Context, name, version string) (*Chart, error) {
	key := r.recordKey(name, version)
	first, record := r.cache.firstDigest(key)
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
	if err := r.verification.checkIdentity(c, name, version); err != nil {
		return nil, err
	}
	if first != "" && c.Digest != first {
		return nil, fmt.Errorf("the digest of the chart was %s and is now %s, and a chart must not change under its version; "+
			"to take the new one, remove %s", first, c.Digest, record)
	}
	if err := r.cache.keep(key, archive); err != nil {
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
	return newChart(c, digestOf(archive))
}

// Forget also removes the record of the first digest from the cache: the cluster has one of its own.
func (r *remote) Forget(name, version string) {
	r.loaded.Delete(name + " " + version)
	r.cache.forget(r.recordKey(name, version))
}

// recordKey differs for charts that were verified, and by which keys: what is in the cache is not verified again.
func (r *remote) recordKey(name, version string) [sha256.Size]byte {
	return recordKey(r.String()+r.verification.id(), name, version)
}

// shareCall makes concurrent calls with the same key share one result. The shared call does not end with the context of one
// caller, and so has a timeout of its own.
func shareCall[T any](ctx context.Context, flights *singleflight.Group, key string, do func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, contextError(ctx)
	}
	done := flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchLimit)
		defer cancel()
		return do(ctx)
	})
	select {
	case <-ctx.Done():
		return none, contextError(ctx)
	case result := <-done:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	}
}

func contextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &unreachableError{fmt.Errorf("no answer in time: %w", ctx.Err())}
	}
	return ctx.Err()
}
