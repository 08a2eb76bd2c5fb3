// Package upgrade_test has the present operator take over from each older version: the objects of clusters in the middle of each passage,
// as an operator of that version has left them, are restored into new clusters, and the passage has to end.
//
// The objects of a version are in testdata/VERSION/PASSAGE. Before a release, its own are added:
//
//	make capture VERSION=v0.1.0
package upgrade_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

var capture = flag.String("capture", "", "a version, whose objects are written to testdata instead of being restored")

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// story is a passage in whose middle the operator is replaced.
type story struct {
	passage string
	// members are the clusters that it needs besides the one of the operator, which is a hub then.
	members []string
	// flags of the operator.
	flags func(*world) []string
	// prepare gives clusters what is not captured, and inject what must not change pods that are restored. Either may be nil.
	prepare, inject func(testing.TB, *world)
	// begin has an operator go half way.
	begin func(testing.TB, *world)
	// end sees an operator go the rest of the way.
	end func(testing.TB, *world)
}

var stories = []story{revision, adoption, rollout, meshservice}

// world is where a story takes place.
type world struct {
	story
	*site
	members    map[string]*site
	operator   *harness.Operator
	kubeconfig string
	scratch    string
	// fleet are the environmentds, in the story that has some.
	fleet any
}

// site is a cluster as its administrator sees it.
type site struct {
	*cluster.Cluster
	client.WithWatch
}

func newSite(t testing.TB, options cluster.Options) *site {
	t.Helper()
	c := cluster.Start(t, options)
	admin, err := harness.NewAdminClient(c)
	if err != nil {
		t.Fatal(err)
	}
	return &site{c, admin}
}

// newWorld has clusters with the permissions of the chart and the CRDs, and no operator yet.
func (s story) newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{story: s, members: map[string]*site{}, scratch: t.TempDir()}
	profile := ""
	if len(s.members) > 0 {
		profile = "hub"
	}
	w.site = newSite(t, cluster.Options{Profile: profile, KeepNamespaces: true})
	for _, name := range s.members {
		w.members[name] = newSite(t, cluster.Options{KeepNamespaces: true})
	}
	var err error
	if w.kubeconfig, err = harness.InstallPermissions(t.Context(), w.Cluster, w, w.scratch, s.passage); err != nil {
		t.Fatal(err)
	}
	if r := harness.RunCommand(t, w.Cluster, "crds", "install"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	return w
}

func (w *world) do(t testing.TB, what func(testing.TB, *world)) {
	t.Helper()
	if what != nil {
		what(t, w)
	}
}

func (w *world) start(t testing.TB) {
	t.Helper()
	flags := append([]string{"--kubeconfig", w.kubeconfig, "--passages", w.passage, "--leader-elect=false", "--log-format=text"}, w.flags(w)...)
	var err error
	if w.operator, err = harness.StartOperator(w.scratch, flags...); err != nil {
		t.Fatal(err)
	}
	w.operator.KeepLogOnFailure(t)
	t.Cleanup(w.operator.Kill)
	wait.Until(t, func(context.Context) error { return w.operator.Ready() })
}

func (w *world) command(t testing.TB, args ...string) {
	t.Helper()
	if r := harness.RunCommand(t, w.Cluster, args...); r.Code != 0 {
		t.Fatalf("fairlead %v: exit code %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
}

// apply writes manifests into a cluster.
func (s *site) apply(t testing.TB, manifests string) {
	t.Helper()
	objects, err := chart.Decode(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		wait.Until(t, func(ctx context.Context) error {
			err := s.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("user"))
			if apierrors.IsInvalid(err) {
				return wait.Permanent(err)
			}
			return err
		})
	}
}

func (s *site) namespace(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		t.Fatal(err)
	}
}

// TestUpgrade: what an older operator has begun, the present one ends.
func TestUpgrade(t *testing.T) {
	if *capture != "" {
		t.Skip("the objects of a version are being captured")
	}
	versions, err := filepath.Glob("testdata/v*")
	if err != nil || len(versions) == 0 {
		t.Fatalf("no older versions: %v", err)
	}
	for _, version := range versions {
		for _, s := range stories {
			t.Run(filepath.Base(version)+"/"+s.passage, func(t *testing.T) {
				t.Parallel()
				w := s.newWorld(t)
				w.do(t, s.prepare)
				r := restoration{uids: map[string]string{}}
				files := map[string]captured{}
				names := append(s.members, "cluster")
				for _, name := range names {
					files[name] = read(t, filepath.Join(version, s.passage, name+".yaml"))
					r.uids[files[name].Cluster] = w.at(name).uid(t)
				}
				for _, name := range names {
					r.restore(t, w.at(name), files[name])
				}
				w.do(t, s.inject)
				w.start(t)
				s.end(t, w)
			})
		}
	}
}

// at is a cluster by the name of its file.
func (w *world) at(name string) *site {
	if m := w.members[name]; m != nil {
		return m
	}
	return w.site
}

// TestCapture writes the objects of the present version.
func TestCapture(t *testing.T) {
	if *capture == "" {
		t.Skip("no version is to be captured: make capture VERSION=v0.1.0")
	}
	for _, s := range stories {
		t.Run(s.passage, func(t *testing.T) {
			w := s.newWorld(t)
			w.do(t, s.prepare)
			w.do(t, s.inject)
			before := map[string]map[objectKey]bool{}
			names := append(s.members, "cluster")
			for _, name := range names {
				before[name] = keysOf(w.at(name).all(t))
			}
			w.start(t)
			s.begin(t, w)
			w.operator.Kill()
			dir := filepath.Join("testdata", *capture, s.passage)
			if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				write(t, filepath.Join(dir, name+".yaml"), w.at(name).uid(t), w.at(name).all(t), before[name])
			}
		})
	}
}
