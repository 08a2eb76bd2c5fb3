package operator

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/version"
)

const (
	// Where older versions that are started by hand have their lease.
	leaseNamespaceOutside = "kube-system"
	ownNamespaceFile      = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// A leader that is killed is replaced after at most the lease plus one retry with its jitter: 12s + 2.2*1.5s. One that
// leaves releases the lease, and is replaced after at most one such retry.
const (
	defaultLeaseDuration = 12 * time.Second
	// Leases count in seconds, and a leader must find the time to renew its own a few times.
	shortestLeaseDuration = 3 * time.Second
)

// leaseTimes are the intervals of leader election.
type leaseTimes struct{ duration, renewDeadline, retryPeriod time.Duration }

func leaseTimesOf(lease time.Duration) leaseTimes {
	return leaseTimes{duration: lease, renewDeadline: lease * 2 / 3, retryPeriod: lease / 8}
}

func validateLease(lease time.Duration) error {
	if lease < shortestLeaseDuration {
		return fmt.Errorf("--leader-election-lease-duration %s is shorter than %s", lease, shortestLeaseDuration)
	}
	return nil
}

// newLock creates the lock itself because the manager's own is of one lease in one namespace: operators with different passages
// could not run side by side, and those of two namespaces would not know of each other.
func newLock(restConfig *rest.Config, options Options, passages []Passage, monitor *leaseMonitor, log logr.Logger) (resourcelock.Interface, error) {
	if !options.LeaderElection {
		return nil, nil
	}
	inside := isInCluster(restConfig, rest.InClusterConfig)
	namespace, err := leaseNamespace(options.LeaderElectionNamespace, inside, ownNamespaceFile)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this operator: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	if inside {
		identity = namespace + "/" + identity
	}
	config := rest.AddUserAgent(rest.CopyConfig(restConfig), "leader-election")
	config.Timeout = max(time.Second, monitor.times.renewDeadline/2)
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare leader election: %w", err)
	}
	lock := lease.New(client, lease.Options{
		Identity: identity, Passages: namesOf(passages), Version: version.Get().Version, FormerNamespace: namespace, Observe: monitor.recordHolders, Now: time.Now,
	})
	monitor.log = log
	log.Info("taking part in leader election", "leases", lock.Describe(), "identity", identity)
	return monitor.wrap(lock), nil
}

// isInCluster tells whether the operator runs in the cluster that it manages. In a pod of another cluster, the namespace of
// that pod means nothing.
func isInCluster(config *rest.Config, surrounding func() (*rest.Config, error)) bool {
	own, err := surrounding()
	return err == nil && own.Host == config.Host
}

func leaseNamespace(asked string, inside bool, ownFile string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	if !inside {
		return leaseNamespaceOutside, nil
	}
	own, err := os.ReadFile(ownFile)
	if err != nil {
		return "", fmt.Errorf("find the namespace of the lease: %w; name it with --leader-election-namespace", err)
	}
	return strings.TrimSpace(string(own)), nil
}
