package scale_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/server"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

const (
	identifiedProxies = 200
	// maxDelay is by how much longer an update may take while unidentified clients connect.
	maxDelay = 2.0
	// maxClientMemory is what they may cost, in MiB.
	maxClientMemory = 200
	updates         = 6
)

// BenchmarkUnidentifiedClients updates 200 proxies, at rest and while 2,000 clients that prove nothing connect again and again
// without a pause: some are silent, some claim to be a proxy, some send large requests.
func BenchmarkUnidentifiedClients(b *testing.B) {
	c := cluster.Start(b, cluster.Options{Profile: "hub"})
	admin, err := harness.NewAdminClient(c)
	if err != nil {
		b.Fatal(err)
	}
	files := newCertificates(b)
	address := freeAddress(b)
	operator := startMeshOperator(b, c, append(files.flags(), "--mesh-bind-address", address)...)
	ids := fillMesh(b, admin, 0, identifiedProxies)
	try(b, func(ctx context.Context) error { return addressed(ctx, admin) })
	proxies := connectEach(b, address, ids, files)
	reported(b, proxies, kumav1alpha1.ModeDisabled, time.Time{})
	change := func(mode kumav1alpha1.Mode) time.Duration {
		b.Helper()
		began := time.Now()
		setMode(b, admin, mode)
		return reported(b, proxies, mode, began)
	}
	change(kumav1alpha1.ModeReachableBackendRefs)
	measure := func() time.Duration {
		b.Helper()
		var took []float64
		for i := range updates {
			took = append(took, change([]kumav1alpha1.Mode{kumav1alpha1.ModeExclusive, kumav1alpha1.ModeReachableBackendRefs}[i%2]).Seconds())
		}
		return time.Duration(median(took) * float64(time.Second))
	}
	for b.Loop() {
		lease := watchLease(b, admin)
		rest := measure()
		atRest, err := memoryOf(operator.Pid(), "VmRSS")
		if err != nil {
			b.Fatal(err)
		}
		attempts := startClients(b, address, files.ca)
		remembered := watchMemory(b.Context(), operator.Pid())
		disturbed := measure()
		used, err := remembered()
		if err != nil {
			b.Fatal(err)
		}
		tried := attempts()
		holders, longest := lease()
		ratio := disturbed.Seconds() / rest.Seconds()
		printRows(fmt.Sprintf("%d proxies, and %d clients that prove nothing (%s)", identifiedProxies, unidentifiedClients, tried),
			[]string{"", "measured", "limit"},
			[]string{"update at rest, until the last proxy has acknowledged", rest.Round(10 * time.Millisecond).String(), ""},
			[]string{"update meanwhile", disturbed.Round(10 * time.Millisecond).String(), ""},
			[]string{"ratio", fmt.Sprintf("%.2f", ratio), fmt.Sprint(maxDelay)},
			[]string{"holders of the lease", fmt.Sprint(holders), "1"},
			[]string{"longest time between two renewals", longest.Round(10 * time.Millisecond).String(), ""},
			[]string{"memory at rest", fmt.Sprintf("%.0f MiB", atRest), ""},
			[]string{"memory meanwhile, at most", fmt.Sprintf("%.0f MiB", used.peak), fmt.Sprintf("%.0f MiB", atRest+maxClientMemory)})
		b.ReportMetric(ratio, "ratio")
		if ratio > maxDelay {
			b.Errorf("an update takes %.2f times as long, want %v at most", ratio, maxDelay)
		}
		if holders != 1 {
			b.Errorf("the lease had %d holders", holders)
		}
		if used.peak > atRest+maxClientMemory {
			b.Errorf("the operator had %.0f MiB, and %.0f MiB at rest", used.peak, atRest)
		}
	}
}

// certificates are the files of a mesh in which proxies have client certificates.
type certificates struct {
	authority     *callers.Authority
	ca, cert, key string
}

func newCertificates(b *testing.B) certificates {
	b.Helper()
	authority, err := callers.NewAuthority()
	if err != nil {
		b.Fatal(err)
	}
	pair, err := authority.Issue(time.Now().Add(24*time.Hour), "127.0.0.1")
	if err != nil {
		b.Fatal(err)
	}
	directory := b.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(directory, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			b.Fatal(err)
		}
		return file
	}
	return certificates{authority, write("ca.crt", authority.PEM), write("tls.crt", pair.Certificate), write("tls.key", pair.Key)}
}

func (c certificates) flags() []string {
	return []string{"--mesh-cert-file", c.cert, "--mesh-key-file", c.key, "--mesh-client-ca-file", c.ca}
}

// of are the credentials of a proxy.
func (c certificates) of(b *testing.B, id model.ProxyID) credentials.TransportCredentials {
	b.Helper()
	pair, err := c.authority.Issue(time.Now().Add(24*time.Hour), server.URI(id))
	if err != nil {
		b.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		b.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{certificate}}
	config.RootCAs.AppendCertsFromPEM(c.authority.PEM)
	return credentials.NewTLS(config)
}

// startMeshOperator runs the binary as users do, without a GOGC that the tests may have.
func startMeshOperator(b *testing.B, c *cluster.Cluster, flags ...string) *harness.Operator {
	b.Helper()
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir()}
	operator, err := harness.StartFairlead(environment, append([]string{
		"operator", "--kubeconfig", c.Kubeconfig(), "--passages", "meshservice", "--mesh-environment", desired.Universal, "--mesh-zone", "east",
	}, flags...)...)
	if err != nil {
		b.Fatal(err)
	}
	operator.KeepLogOnFailure(b)
	b.Cleanup(operator.Kill)
	return operator
}

func setMode(b *testing.B, admin client.Client, mode kumav1alpha1.Mode) {
	b.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"meshServices":%q}}`, mode)
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: meshName}}
	if err := admin.Patch(b.Context(), mesh, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		b.Fatal(err)
	}
}

// startClients runs unidentified clients in a process of their own, until the function is called that says what they did.
func startClients(b *testing.B, address, ca string) func() string {
	b.Helper()
	own, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	process := exec.Command(own)
	process.Env = append(os.Environ(), clientsVariable+"="+address, caVariable+"="+ca)
	output := &harness.Log{}
	process.Stdout, process.Stderr = output, output
	if err := process.Start(); err != nil {
		b.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	b.Cleanup(end)
	try(b, func(context.Context) error {
		if !strings.Contains(output.Since(0), saysRunning) {
			return fmt.Errorf("the clients do not run yet: %s", output.Since(0))
		}
		return nil
	})
	return func() string {
		end()
		lines := strings.Split(strings.TrimSpace(output.Since(0)), "\n")
		return lines[len(lines)-1]
	}
}

// watchLease follows the operator's lease, until the function is called that says how many held it, and how long it was not
// renewed.
func watchLease(b *testing.B, admin client.WithWatch) func() (int, time.Duration) {
	b.Helper()
	watch, err := admin.Watch(b.Context(), &coordinationv1.LeaseList{}, client.InNamespace("kube-system"), client.MatchingFields{"metadata.name": "fairlead-meshservice"})
	if err != nil {
		b.Fatal(err)
	}
	holders := map[string]bool{}
	var last time.Time
	var longest time.Duration
	var ended sync.WaitGroup
	ended.Go(func() {
		for event := range watch.ResultChan() {
			lease, is := event.Object.(*coordinationv1.Lease)
			if !is || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
				continue
			}
			holders[*lease.Spec.HolderIdentity] = true
			if renewed := lease.Spec.RenewTime.Time; !last.IsZero() {
				longest = max(longest, renewed.Sub(last))
			}
			last = lease.Spec.RenewTime.Time
		}
	})
	return func() (int, time.Duration) {
		watch.Stop()
		ended.Wait()
		return len(holders), longest
	}
}
