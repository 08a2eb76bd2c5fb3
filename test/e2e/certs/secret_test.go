package certs_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	secretName = "fairlead-webhook-certificate"
	host       = "fairlead-webhook.fairlead.svc"
)

var lifetimes = certs.Lifetimes{Authority: 100 * time.Hour, Certificate: 9 * time.Hour}

// sharedSecret is the Secret of several replicas in a namespace of its own, and a clock that the test moves.
type sharedSecret struct {
	t       testing.TB
	config  *rest.Config
	secrets typedcorev1.SecretInterface
	in      string

	mu  sync.Mutex
	now time.Time
}

func newSharedSecret(t testing.TB) *sharedSecret {
	t.Helper()
	c := cluster.Shared(t)
	v := &sharedSecret{t: t, config: c.Config(), in: c.Namespace(t), now: time.Now()}
	client, err := typedcorev1.NewForConfig(v.config)
	if err != nil {
		t.Fatal(err)
	}
	v.secrets = client.Secrets(v.in)
	return v
}

// replica is one of those that share the Secret.
func (v *sharedSecret) replica(config *rest.Config, names ...string) *certs.Source {
	v.t.Helper()
	if len(names) == 0 {
		names = []string{host}
	}
	s, err := certs.New(config, certs.Options{
		Kind: certs.SelfSigned, Namespace: v.in, Name: secretName, Names: names, Lifetimes: lifetimes, Log: logr.Discard(),
		Now: func() time.Time {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.now
		},
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return s
}

func (v *sharedSecret) load(s *certs.Source) {
	v.t.Helper()
	if err := s.Load(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
}

func (v *sharedSecret) pass(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now.Add(d)
}

func (v *sharedSecret) open() *corev1.Secret {
	v.t.Helper()
	secret, err := v.secrets.Get(v.t.Context(), secretName, metav1.GetOptions{})
	if err != nil {
		v.t.Fatal(err)
	}
	return secret
}

func TestReplicasShareOneCertificate(t *testing.T) {
	v := newSharedSecret(t)
	sources := make([]*certs.Source, 6)
	all := func(what string) {
		t.Helper()
		var group sync.WaitGroup
		for i := range sources {
			group.Go(func() {
				if err := sources[i].Load(t.Context()); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		group.Wait()
		for _, s := range sources {
			v.load(s) // one that lost a race for the write has read what won it, and this is for one that was late
		}
		held := leafOf(t, v.open().Data)
		for i, s := range sources {
			if certificate, err := s.GetCertificate(nil); err != nil || !certificate.Leaf.Equal(held) {
				t.Errorf("%s: replica %d serves another certificate: %v", what, i, err)
			}
		}
	}
	for i := range sources {
		sources[i] = v.replica(v.config)
	}
	all("at first")
	first := v.open()
	all("with nothing to do")
	if v.open().ResourceVersion != first.ResourceVersion {
		t.Error("with nothing to do, the Secret was written")
	}

	v.pass(7 * time.Hour)
	all("when the certificate is used up")
	second := v.open()
	if string(second.Data["tls.crt"]) == string(first.Data["tls.crt"]) {
		t.Error("the certificate was not renewed")
	}
	if string(second.Data["ca.crt"]) != string(first.Data["ca.crt"]) {
		t.Error("the authority changed with the certificate")
	}

	for i := range sources {
		sources[i] = v.replica(v.config)
	}
	all("started again")
	if diff := cmp.Diff(second.Data, v.open().Data); diff != "" {
		t.Error("a restart made another certificate")
	}

	v.pass(80 * time.Hour)
	all("when the authority is used up")
	if string(v.open().Data["ca.crt"]) == string(first.Data["ca.crt"]) {
		t.Error("the authority was not renewed")
	}
}

func TestDeletedSecretIsRecreated(t *testing.T) {
	v := newSharedSecret(t)
	s := v.replica(v.config)
	v.load(s)
	before := v.open()
	if err := v.secrets.Delete(t.Context(), secretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	v.load(s)
	if diff := cmp.Diff(before.Data, v.open().Data); diff != "" {
		t.Error("callers have to trust another authority now")
	}
}

func TestOperatorsOfDifferentNamesAgree(t *testing.T) {
	v := newSharedSecret(t)
	one, other := v.replica(v.config, host), v.replica(v.config, "127.0.0.1")
	v.load(one)
	v.load(other)
	agreed := v.open().ResourceVersion
	v.load(one)
	v.load(other)
	if v.open().ResourceVersion != agreed {
		t.Error("they take turns")
	}
}

func TestForeignSecret(t *testing.T) {
	v := newSharedSecret(t)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Data: map[string][]byte{"password": []byte("x")}}
	if _, err := v.secrets.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := v.replica(v.config).Load(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the Secret is not managed by Fairlead") || !strings.Contains(err.Error(), v.in+"/"+secretName) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(theirs.Data, v.open().Data); diff != "" {
		t.Error(diff)
	}
}

func TestSecretManagedByUser(t *testing.T) {
	v := newSharedSecret(t)
	s, err := certs.New(v.config, certs.Options{
		Kind: certs.Secret, Namespace: v.in, Name: secretName, Names: []string{"127.0.0.1"}, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("before it is there: %v", err)
	}
	files, err := selfIssued(1)
	if err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Data: files}
	if _, err := v.secrets.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	v.load(s)
	if got, err := s.GetCertificate(nil); err != nil || !got.Leaf.Equal(leafOf(t, files)) {
		t.Errorf("another certificate is served: %v", err)
	}
}

func TestCrashWhileRenewing(t *testing.T) {
	cases := map[string]time.Duration{"made": 0, "certificate renewed": 7 * time.Hour, "authority renewed": 85 * time.Hour}
	for name, age := range cases {
		t.Run(name, func(t *testing.T) {
			c := cluster.Shared(t)
			faults.CrashAtEveryWrite(t, faults.Scenario{Config: c.Config(), Timeout: wait.Deadline(), Setup: func(t testing.TB) faults.World {
				v := newSharedSecret(t)
				if age > 0 {
					v.load(v.replica(v.config))
					v.pass(age)
				}
				return faults.World{
					Run:     func(ctx context.Context, config *rest.Config) error { return v.replica(config).Load(ctx) },
					Settled: func(ctx context.Context) error { return v.settled(ctx) },
					Snapshot: func(context.Context) (map[string]string, error) {
						keys := map[string]string{}
						for key := range maps.Keys(v.open().Data) {
							keys[key] = "is there"
						}
						return keys, nil
					},
				}
			}})
		})
	}
}

// settled is when there is nothing left to renew.
func (v *sharedSecret) settled(ctx context.Context) error {
	secret, err := v.secrets.Get(ctx, secretName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for file, atLeast := range map[string]time.Duration{"tls.crt": lifetimes.Certificate / 3, "ca.crt": lifetimes.Authority / 5} {
		certificate, err := parse(secret.Data[file])
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if left := certificate.NotAfter.Sub(v.now); left <= atLeast {
			return fmt.Errorf("%s ends in %s", file, left)
		}
	}
	return nil
}

func leafOf(t testing.TB, files map[string][]byte) *x509.Certificate {
	t.Helper()
	leaf, err := parse(files["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}
