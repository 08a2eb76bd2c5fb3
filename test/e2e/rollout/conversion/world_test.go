package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	crdName = "materializes.materialize.cloud"
	older   = "v1alpha1"
	newer   = "v1alpha2"
)

// world is a cluster and all environmentds in it. Its operator runs within the test.
type world struct {
	*harness.World
	fleet    *environmentd.Fleet
	recorder *recorder
	// config is that of the operator.
	config   *rest.Config
	operator *inProcessOperator
	// inherited are the environments that another operator has left behind, by what is told of them.
	inherited map[string]*environment
}

// One world is for the stories, and one for all other tests.
var shared, sharedByStories harness.Shared[*world]

// theWorld is the one that the tests share, with an operator at work. What that logs in the test's time is kept if the
// test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	return enter(t, &shared, cluster.Shared(t), legacies())
}

// storyWorld is the same for the stories, which need fewer environments.
func storyWorld(t testing.TB) *world {
	t.Helper()
	const name = "stories"
	c := cluster.Several(t, map[string]cluster.Options{name: options})[name]
	return enter(t, &sharedByStories, c, roundTripLegacies())
}

func enter(t testing.TB, s *harness.Shared[*world], c *cluster.Cluster, all map[string]legacy) *world {
	t.Helper()
	w := s.Get(t, func(scratch string) (*world, error) { return prepare(c, scratch, all) })
	w.operator.keepLogOnFailure(t)
	return w
}

// prepare tells the story up to where the tests begin: another operator works with v1alpha1, leaves, and Fairlead comes.
func prepare(c *cluster.Cluster, scratch string, all map[string]legacy) (*world, error) {
	// Each of its steps has a deadline of its own.
	ctx, cancel := context.WithTimeout(context.Background(), 4*wait.Deadline())
	defer cancel()
	w := &world{fleet: environmentd.Start(), inherited: map[string]*environment{}}
	var err error
	if w.World, err = harness.NewWorld(ctx, c, scratch, "rollout"); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(w.Scheme()); err != nil {
		return nil, err
	}
	if w.config, err = clientcmd.BuildConfigFromFlags("", w.OperatorKubeconfig); err != nil {
		return nil, err
	}
	if err := w.installOlder(ctx); err != nil {
		return nil, err
	}
	if err := w.inherit(ctx, all); err != nil {
		return nil, err
	}
	if w.recorder, err = startRecorder(ctx, w); err != nil {
		return nil, err
	}
	if _, err := crds.Install(ctx, c.Config(), crds.Options{Names: []string{crdName}, TakeOver: true, Timeout: wait.Deadline()}); err != nil {
		return nil, fmt.Errorf("take over the CRD: %w", err)
	}
	edited := make(chan struct{})
	w.holdEdited(all, edited)
	w.operator = w.begin()
	err = wait.Try(ctx, func(ctx context.Context) error { return errors.Join(w.operator.alive(), w.served(ctx)) })
	if err == nil {
		err = w.editEarly(ctx, all)
	}
	close(edited)
	if err != nil {
		return nil, err
	}
	return w, wait.Try(ctx, func(ctx context.Context) error {
		return errors.Join(w.operator.alive(), w.served(ctx), w.migrated(ctx))
	})
}

// installOlder installs the CRD as the other operator has: with one version, and under its own name.
func (w *world) installOlder(ctx context.Context) error {
	named, err := crds.Named(crdName)
	if err != nil {
		return err
	}
	crd := named[0]
	crd.Annotations, crd.Labels = nil, nil
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != older })
	crd.Spec.Versions[0].Storage = true
	if err := w.Create(ctx, crd, client.FieldOwner("another-operator")); err != nil {
		return fmt.Errorf("create CRD %s as it was before Fairlead, which takes a cluster without it: unset %s: %w", crdName, cluster.DirVariable, err)
	}
	return wait.Try(ctx, func(ctx context.Context) error { return w.List(ctx, &v1alpha1.MaterializeList{}) })
}

// served tells whether both versions are.
func (w *world) served(ctx context.Context) error {
	return errors.Join(w.List(ctx, &v1alpha1.MaterializeList{}), w.List(ctx, &v1alpha2.MaterializeList{}))
}

func (w *world) crd(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, w.Get(ctx, client.ObjectKey{Name: crdName}, crd)
}

// migrated tells whether nothing is stored in the older version any more.
func (w *world) migrated(ctx context.Context) error {
	crd, err := w.crd(ctx)
	if err != nil {
		return err
	}
	if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{newer}) {
		return fmt.Errorf("the stored versions are %v", stored)
	}
	return nil
}

// run is an operator, until the context ends.
func (w *world) run(ctx context.Context, log *harness.Log) error {
	options := operator.DefaultOptions()
	options.Passages = []string{rollout.Name}
	// It is released by whoever leaves. A leader that is starved for two thirds of it would end.
	options.LeaderElectionNamespace, options.LeaderElectionLeaseDuration = "fairlead-system", wait.Deadline()/3
	options.HealthProbeBindAddress, options.MetricsBindAddress = "0", "0"
	options.Rollout.URL, options.Rollout.Timeout = w.fleet.URL(), time.Hour
	return operator.Run(ctx, w.config, options, operator.NewLogger(log, "text", "info"))
}
