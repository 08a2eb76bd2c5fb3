package foreign

import (
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/internal/kube"
)

const (
	// maxNamed is how many of the objects that could not be written are named.
	maxNamed = 3
	// maxUnavailable is how many writes a server or webhook may fail to serve before the others are not tried either.
	maxUnavailable = 3
)

// failures are the errors of writes to many objects, which are independent of each other.
type failures struct {
	named              []error
	total, unavailable int
}

func (f *failures) add(err error) {
	if f.total++; len(f.named) < maxNamed {
		f.named = append(f.named, err)
	}
	if kube.IsUnavailable(err) {
		f.unavailable++
	}
}

// isUnavailable tells whether the next write would fail as well: what serves them, such as a webhook, is not there.
func (f *failures) isUnavailable() bool { return f.unavailable >= maxUnavailable }

// err names the first objects, and counts the others; nil if there are none.
func (f *failures) err() error {
	err := errors.Join(f.named...)
	if more := f.total - len(f.named); more > 0 {
		return fmt.Errorf("%w\nand %d more", err, more)
	}
	return err
}
