package revision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/chart"
	"github.com/fairlead/fairlead/test/cluster"
)

// home is the namespace of the operator.
const home = "fairlead-system"

// world is a cluster with an operator at work, as its administrator sees it.
type world struct {
	*cluster.Cluster
	client.WithWatch
	operator *process
}

var shared struct {
	once    sync.Once
	world   *world
	scratch string
	err     error
}

// theWorld is the one that the tests share. The operator's log of the test's time is shown if the test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c, charts := cluster.Shared(t), cluster.Charts(t)
	shared.once.Do(func() {
		if shared.scratch, shared.err = os.MkdirTemp("", "revision-"); shared.err == nil {
			shared.world, shared.err = start(c, charts, shared.scratch)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.world.operator.showTo(t)
	return shared.world
}

// ownWorld is a cluster of the test's own, whose operator has other flags. With a --chart-dir or --chart-repository
// among them, the charts come from there.
func ownWorld(t testing.TB, flags ...string) *world {
	t.Helper()
	w, err := start(cluster.Start(t, cluster.Options{}), cluster.Charts(t), t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	w.operator.showTo(t)
	t.Cleanup(func() { w.operator.kill() })
	return w
}

// start brings the chart's permissions into the cluster and runs the operator with them.
func start(c *cluster.Cluster, charts, scratch string, flags ...string) (*world, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin, err := administrator(c)
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: c, WithWatch: admin}
	kubeconfig, err := w.installPermissions(ctx, scratch)
	if err != nil {
		return nil, err
	}
	args := []string{"operator", "--kubeconfig", kubeconfig, "--leader-elect=false", "--log-format", "text"}
	if !given(flags, "--chart-dir") && !given(flags, "--chart-repository") {
		args = append(args, "--chart-dir", charts)
	}
	if w.operator, err = run(scratch, append(args, flags...)...); err != nil {
		return nil, err
	}
	return w, attempt(ctx, 30*time.Second, func(ctx context.Context) error {
		return errors.Join(
			w.operator.alive(),
			w.List(ctx, &v1.IstioList{}), w.List(ctx, &v1.IstioRevisionList{}), w.List(ctx, &v1.IstioRevisionTagList{}),
		)
	})
}

func given(flags []string, name string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return flag == name || strings.HasPrefix(flag, name+"=") })
}

// administrator may do everything and knows all kinds.
func administrator(c *cluster.Cluster) (client.WithWatch, error) {
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(c.Config(), client.Options{Scheme: scheme})
}

// installPermissions applies what the chart allows the operator, and returns a kubeconfig of its ServiceAccount.
func (w *world) installPermissions(ctx context.Context, dir string) (string, error) {
	err := w.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})
	if client.IgnoreAlreadyExists(err) != nil {
		return "", fmt.Errorf("create namespace %s: %w", home, err)
	}
	release, err := chart.Render("fairlead", home, nil)
	if err != nil {
		return "", err
	}
	if err := release.Apply(ctx, w, "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"); err != nil {
		return "", err
	}
	token, err := release.Token(ctx, w, "fairlead")
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(w.Kubeconfig())
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
	}
	path := filepath.Join(dir, "operator.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
