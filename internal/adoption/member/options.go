package member

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Limits are how many requests the operator makes to one cluster.
type Limits struct {
	QPS   float32
	Burst int
}

// DefaultLimits leave throttling mostly to the API priority and fairness of the cluster.
func DefaultLimits() Limits { return Limits{QPS: 200, Burst: 400} }

// AddFlags registers a flag for each.
func (l *Limits) AddFlags(flags *pflag.FlagSet) {
	flags.Float32Var(&l.QPS, "member-qps", l.QPS, "requests a second to each cluster that has joined; negative for no limit")
	flags.IntVar(&l.Burst, "member-burst", l.Burst, "requests to each cluster that has joined that may be made at once")
}

// Validate refuses what cannot work.
func (l Limits) Validate() error {
	var errs []error
	if l.QPS == 0 {
		errs = append(errs, errors.New("--member-qps 0 would let nothing through: give a number above 0, or a negative one for no limit"))
	}
	if l.QPS > 0 && l.Burst < 1 {
		errs = append(errs, fmt.Errorf("--member-burst %d would let nothing through: give at least 1", l.Burst))
	}
	return errors.Join(errs...)
}
