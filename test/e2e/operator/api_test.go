package operator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// administrator is a client that may do everything and knows all kinds.
func administrator(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme, err := operator.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installCRDs installs those of a passage, and waits until their kinds are served, which is a moment after they are established.
func installCRDs(t testing.TB, config *rest.Config, passage string) {
	t.Helper()
	admin := administrator(t, config)
	for _, p := range operator.Passages() {
		if p.Name != passage {
			continue
		}
		if _, err := crds.Install(t.Context(), config, crds.Options{Names: p.CRDs, Timeout: wait.Deadline()}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range p.Caches {
			found, err := admin.GroupVersionKindFor(kind)
			if err != nil {
				t.Fatal(err)
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(found)
			wait.Until(t, func(ctx context.Context) error { return admin.List(ctx, list, client.Limit(1)) })
		}
	}
}

// world is a cluster with an operator of the passage revision at work.
type world struct {
	*cluster.Cluster
	client.WithWatch
	operator *process
}

var shared harness.Shared[*process]

// theWorld is the one that tests share, each with an Istio of its own.
func theWorld(t testing.TB) world {
	t.Helper()
	c, charts := cluster.Shared(t), cluster.Charts(t)
	operator := shared.Get(t, func(scratch string) (*process, error) {
		o, err := harness.StartOperator(scratch, "--kubeconfig", c.Kubeconfig(), "--chart-dir", charts, "--passages", "revision", "--leader-elect=false")
		return &process{o}, err
	})
	operator.KeepLogOnFailure(t)
	operator.leading(t)
	return world{Cluster: c, WithWatch: administrator(t, c.Config()), operator: operator}
}

// uniqueName leaves room for what is put behind it: the name of an Istio is bounded.
func uniqueName(t testing.TB) string {
	name := cluster.Name(t)
	return strings.TrimLeft(name[max(0, len(name)-20):], "-")
}

func makeIstio(name, version string) *v1.Istio {
	return &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.IstioSpec{Version: version}}
}

func revisionBased(istio *v1.Istio) *v1.Istio {
	istio.Spec.UpdateStrategy.Type = v1.UpdateStrategyRevisionBased
	return istio
}

// create makes an object, and removes it when the test ends.
func create[T client.Object](t testing.TB, c client.Client, object T) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.Background(), object)); err != nil {
			t.Error(err)
		}
	})
	return object
}

// change reads an Istio, changes it and writes it back.
func change(t testing.TB, c client.Client, name string, change func(*v1.Istio)) {
	t.Helper()
	edit(t, c, makeIstio(name, ""), "administrator", change)
}

// edit reads the object of this name, changes it and writes it back, until no other write came between.
func edit[T client.Object](t testing.TB, c client.Client, named T, owner client.FieldOwner, change func(T)) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		object := reflect.New(reflect.TypeOf(named).Elem()).Interface().(T)
		if err := c.Get(ctx, client.ObjectKeyFromObject(named), object); err != nil {
			return err
		}
		change(object)
		return c.Update(ctx, object, owner)
	})
}

// reported waits until the operator has reported on the latest spec with this state, and returns what it wrote.
func reported(t testing.TB, c client.Client, name string, state v1.State) *v1.Istio {
	t.Helper()
	var istio v1.Istio
	wait.Until(t, func(ctx context.Context) error { return isReported(ctx, c, name, state, &istio) })
	return &istio
}

func isReported(ctx context.Context, c client.Reader, name string, state v1.State, istio *v1.Istio) error {
	*istio = v1.Istio{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, istio); err != nil {
		return err
	}
	if istio.Status.ObservedGeneration != istio.Generation || istio.Status.State != state {
		return fmt.Errorf("Istio %s is at generation %d, want state %s, have %+v",
			name, istio.Generation, state, istio.Status)
	}
	return nil
}

// says checks a condition.
func says(t testing.TB, istio *v1.Istio, kind v1.ConditionType, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	got := meta.FindStatusCondition(istio.Status.Conditions, string(kind))
	if got == nil || got.Status != status || got.Reason != reason || got.Message != message {
		t.Errorf("condition %s is %+v,\nwant %s %s: %s", kind, got, status, reason, message)
	}
}

// kubeconfig writes one for a server, the certificate it shows and a token.
func kubeconfig(t testing.TB, server string, ca []byte, token string) string {
	t.Helper()
	config := clientcmdapi.Config{
		CurrentContext: "test",
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {Token: token}},
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
