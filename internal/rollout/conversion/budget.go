package conversion

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// DefaultMemory is what reviews may hold at once in an operator without a memory limit.
	DefaultMemory = 128 << 20
	// MinMemory lets objects of any size be converted.
	MinMemory = 32 << 20

	// maxObjectBytes is what the API server accepts in a request, and more than etcd stores.
	maxObjectBytes = 3 << 20
	// maxSmallBytes is the largest review that the share for small ones is kept for. A read or a write of an object is one.
	maxSmallBytes = 1 << 20
	// parseFactor is how many times its text an object takes while it is converted, if its author wants it to: a map for
	// every few bytes.
	parseFactor = 48
	// growBytes is what is reserved at a time for a review that has not told its size.
	growBytes = 1 << 20
	// queueTimeout is how long a review waits for memory. The API server waits 30 seconds for the answer.
	queueTimeout = 5 * time.Second
)

// budget limits the memory of all reviews that are being converted. The reviews of the API server look like anyone's, so
// a part is kept for small ones: large ones never keep those waiting.
type budget struct {
	memory              int64
	maxLarge, maxParse  int64
	large, small, parse *semaphore.Weighted
}

func newBudget(memory int64) *budget {
	b := &budget{memory: memory, maxLarge: memory / 2, maxParse: memory / 4}
	b.large = semaphore.NewWeighted(b.maxLarge)
	b.small = semaphore.NewWeighted(memory / 4)
	b.parse = semaphore.NewWeighted(b.maxParse)
	return b
}

// tooLargeError is a review that can never be converted within the budget.
type tooLargeError struct{ weight, limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the review needs %s of memory, and one review gets at most %s: %s", formatBytes(e.weight), formatBytes(e.limit), remedy)
}

// busyError is a review for which there was no memory in time.
type busyError struct{ memory int64 }

func (e *busyError) Error() string {
	return fmt.Sprintf("other reviews use the %s of memory that conversion gets: try again; if that happens often, %s", formatBytes(e.memory), remedy)
}

const remedy = "raise the memory limit of the operator (resources.limits.memory of the chart), of which conversion gets a quarter, " +
	"or set --webhook-memory (webhook.memory of the chart)"

// weigh is the memory that a review of a size takes: its answer, which is about as large, and one object of it.
func weigh(bytes int64) int64 { return bytes + min(bytes, maxObjectBytes) }

// reserve waits for the memory of a review, whose size is negative if it is unknown.
func (b *budget) reserve(ctx context.Context, bytes int64) (*reservation, error) {
	r := &reservation{budget: b, share: b.large, held: weigh(max(bytes, growBytes/2))}
	if bytes >= 0 {
		r.held = weigh(bytes)
	}
	if r.held > b.maxLarge {
		return nil, &tooLargeError{r.held, b.maxLarge}
	}
	if bytes >= 0 && bytes <= maxSmallBytes {
		if r.share = b.small; b.small.TryAcquire(r.held) {
			return r, nil
		}
		if b.large.TryAcquire(r.held) {
			r.share = b.large
			return r, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if r.share.Acquire(ctx, r.held) != nil {
		return nil, &busyError{b.memory}
	}
	return r, nil
}

// reservation is the memory of one review.
type reservation struct {
	budget *budget
	share  *semaphore.Weighted
	held   int64
}

// grow reserves more for a review that needs more than it has. It does not wait: two reviews that hold memory could wait for
// each other.
func (r *reservation) grow(need int64) error {
	if need <= r.held {
		return nil
	}
	if need > r.budget.maxLarge {
		return &tooLargeError{need, r.budget.maxLarge}
	}
	more := min(need-r.held+growBytes, r.budget.maxLarge-r.held)
	if !r.share.TryAcquire(more) {
		return &busyError{r.budget.memory}
	}
	r.held += more
	return nil
}

func (r *reservation) release() { r.share.Release(r.held) }

// parsing waits until an object may be converted, and returns what ends that. An object that needs more than there is for
// all is converted alone.
func (b *budget) parsing(ctx context.Context, bytes int) (func(), error) {
	weight := min(int64(bytes)*parseFactor, b.maxParse)
	if err := b.parse.Acquire(ctx, weight); err != nil {
		return nil, &busyError{b.memory}
	}
	return func() { b.parse.Release(weight) }, nil
}

func formatBytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
