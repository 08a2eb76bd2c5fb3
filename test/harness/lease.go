package harness

import (
	"time"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// Lease is a flag: how long a leader that is killed keeps its lease. It grows with the machine, for a leader that does not
// get to renew its lease in two thirds of it ends; but no machine is so slow that it needs more than a minute.
func Lease() string { return LeaseOf(min(wait.Deadline()/9, time.Minute)) }

// LongLease is for an operator that is not replaced before the test ends the lease.
func LongLease() string { return LeaseOf(wait.Deadline() / 3) }

// LeaseOf is a flag: the lease lasts so long.
func LeaseOf(d time.Duration) string {
	return "--leader-election-lease-duration=" + d.Round(time.Second).String()
}
