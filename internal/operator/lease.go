package operator

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseName = "fairlead"
	// Exists in every cluster, hubs included, whatever the namespace of the kubeconfig: two operators that are started by
	// hand against one cluster must share a lease.
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

// newLock creates the lock itself because the manager's own records events through the old events API, and the operator would
// need a permission for that alone.
func newLock(restConfig *rest.Config, options Options, monitor *leaseMonitor, log logr.Logger) (resourcelock.Interface, error) {
	if !options.LeaderElection {
		return nil, nil
	}
	namespace, err := leaseNamespace(options.LeaderElectionNamespace, isInCluster(restConfig, rest.InClusterConfig), ownNamespaceFile)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this operator: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	log.Info("taking part in leader election", "lease", namespace+"/"+leaseName, "identity", identity)
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: identity}, restConfig, monitor.times.renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("prepare the lease %s/%s: %w", namespace, leaseName, err)
	}
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
