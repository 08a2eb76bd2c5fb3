package operator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestLeaseNamespace(t *testing.T) {
	dir := t.TempDir()
	mounted := filepath.Join(dir, "namespace")
	if err := os.WriteFile(mounted, []byte("fairlead-system\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(dir, "absent")
	nowhere := func() (*rest.Config, error) { return nil, rest.ErrNotInCluster }
	pod := func() (*rest.Config, error) { return &rest.Config{Host: "https://10.96.0.1:443"}, nil }

	cases := map[string]struct {
		asked       string
		server      string
		surrounding func() (*rest.Config, error)
		file        string
		want        string
		fails       bool
	}{
		"asked for, in a pod":                         {"mine", "https://10.96.0.1:443", pod, mounted, "mine", false},
		"asked for, outside a cluster":                {"mine", "https://192.0.2.1:6443", nowhere, absent, "mine", false},
		"in a pod of the cluster":                     {"", "https://10.96.0.1:443", pod, mounted, "fairlead-system", false},
		"in a pod, with another cluster's kubeconfig": {"", "https://192.0.2.1:6443", pod, mounted, "kube-system", false},
		"outside a cluster":                           {"", "https://192.0.2.1:6443", nowhere, absent, "kube-system", false},
		"a file like a pod's, but no pod":             {"", "https://192.0.2.1:6443", nowhere, mounted, "kube-system", false},
		"in a pod that does not know its namespace":   {"", "https://10.96.0.1:443", pod, absent, "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := leaseNamespace(c.asked, isInCluster(&rest.Config{Host: c.server}, c.surrounding), c.file)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestTimesOfALease(t *testing.T) {
	for _, lease := range []time.Duration{shortestLeaseDuration, defaultLeaseDuration, time.Minute} {
		times := leaseTimesOf(lease)
		// What client-go insists on, with the jitter that it adds to a retry.
		if times.duration <= times.renewDeadline || times.renewDeadline <= times.retryPeriod*12/10 {
			t.Errorf("of %s: %+v", lease, times)
		}
	}
	if got, want := leaseTimesOf(defaultLeaseDuration), (leaseTimes{12 * time.Second, 8 * time.Second, 1500 * time.Millisecond}); got != want {
		t.Errorf("by default: %+v, want %+v", got, want)
	}
}
