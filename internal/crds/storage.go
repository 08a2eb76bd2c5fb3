package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// MigrateOptions say how stored objects are migrated.
type MigrateOptions struct {
	// Names of the CRDs; nil stands for all of Fairlead's.
	Names []string
	// CRDs, if set, are those whose objects are migrated, instead of Fairlead's own.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Rate is how many objects are rewritten in a second at most.
	Rate float32
	// Progress, if set, hears of it after every page, and at the end.
	Progress func(Migration)
	// Refused, if set, hears of every object that could not be rewritten, and why.
	Refused func(object string, err error)
	// PageSize is how many objects are listed at a time. The default is 500.
	PageSize int64
	Log      logr.Logger
}

const (
	defaultPageSize = 500
	defaultRate     = 50
)

// Migration is how far the stored objects of one CRD are.
type Migration struct {
	Name string
	// To is the version that they are stored in.
	To string
	// From are the others that they may have been stored in; none means that there was nothing to do.
	From []string
	// Rewritten objects, those that could not be, and those that are yet to come as far as is known.
	Rewritten, Failed int
	Remaining         int64
	// Done is when none is left behind.
	Done bool
}

// ErrLeftBehind is objects that could not be rewritten. They are as good as before, and the next migration tries again.
var ErrLeftBehind = errors.New("objects are still stored in an older version")

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=istiorevisiontags.sailoperator.io;materializes.materialize.cloud,verbs=patch
// +kubebuilder:rbac:groups=materialize.cloud,resources=materializes,verbs=list;patch

// Migrate has every object stored in the version that its CRD stores now, without changing it, and then lets the CRD
// forget the older versions. It starts from the beginning each time: an object that is stored right already costs a
// request and no write.
func Migrate(ctx context.Context, cfg *rest.Config, opts MigrateOptions) ([]Migration, error) {
	crds, err := choose(opts.CRDs, opts.Names)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the rewriting has a limit of its own
	client, err := apiextensions.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate stored objects: %w", err)
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate stored objects: %w", err)
	}
	if opts.Rate == 0 {
		opts.Rate = defaultRate
	}
	if opts.PageSize == 0 {
		opts.PageSize = defaultPageSize
	}
	if opts.Progress == nil {
		opts.Progress = func(Migration) {}
	}
	if opts.Refused == nil {
		opts.Refused = func(string, error) {}
	}
	m := &migrator{
		crds: client.CustomResourceDefinitions(), objects: objects, opts: opts,
		pace: flowcontrol.NewTokenBucketRateLimiter(opts.Rate, max(1, int(opts.Rate)/5)),
	}
	var all []Migration
	var errs []error
	for _, crd := range crds {
		name := crd.Name
		migration, err := m.migrate(ctx, name)
		if apierrors.IsNotFound(err) && len(opts.Names) == 0 {
			continue // nobody has asked for it
		}
		if ctx.Err() != nil {
			return all, fmt.Errorf("migrate the stored objects of CRD %s: %w", name, context.Cause(ctx))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("migrate the stored objects of CRD %s: %w", name, err))
		}
		all = append(all, migration)
	}
	return all, errors.Join(errs...)
}

type migrator struct {
	crds    apiextensions.CustomResourceDefinitionInterface
	objects metadata.Interface
	opts    MigrateOptions
	pace    flowcontrol.RateLimiter
}

// migrate goes through all objects of a CRD. A CRD that has changed meanwhile may have had another storage version in
// between, and then they are gone through again.
func (m *migrator) migrate(ctx context.Context, name string) (Migration, error) {
	for {
		crd, err := m.crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return Migration{Name: name}, err
		}
		progress := Migration{Name: name, To: storageVersion(crd), From: leftBehind(crd)}
		if ok, why := established(crd); !ok {
			return progress, errors.New(why)
		}
		if len(progress.From) == 0 {
			progress.Done = true
			m.opts.Progress(progress)
			return progress, nil
		}
		if err := m.rewriteAll(ctx, crd, &progress); err != nil {
			return progress, err
		}
		if progress.Failed > 0 {
			return progress, fmt.Errorf("%w: %d of %d: see what was refused and why, and try again",
				ErrLeftBehind, progress.Failed, progress.Failed+progress.Rewritten)
		}
		finished, err := m.finish(ctx, crd)
		if err != nil {
			return progress, err
		}
		if finished {
			progress.Done = true
			m.opts.Progress(progress)
			return progress, nil
		}
		m.opts.Log.Info("the custom resource definition has changed, its objects are gone through again", "name", name)
	}
}

// leftBehind are the versions, other than the one that is stored now, in which objects may be stored.
func leftBehind(crd *apiextensionsv1.CustomResourceDefinition) []string {
	storage := storageVersion(crd)
	var others []string
	for _, version := range crd.Status.StoredVersions {
		if version != storage {
			others = append(others, version)
		}
	}
	return others
}

// finish lets the CRD forget the older versions, unless it is another one by now than when the objects were gone
// through. The write holds only for the CRD that was looked at.
func (m *migrator) finish(ctx context.Context, began *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for {
		now, err := m.crds.Get(ctx, began.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if !mayForget(began, now) {
			return false, nil
		}
		_, err = m.crds.Patch(ctx, began.Name, mergePatch, forget(now), metav1.PatchOptions{FieldManager: FieldOwner}, "status")
		switch {
		case err == nil:
			return true, nil
		case !apierrors.IsConflict(err):
			return false, fmt.Errorf("drop %v from status.storedVersions: %w", leftBehind(now), err)
		}
	}
}

// mayForget tells whether what was gone through is all there can be. Every change of a CRD's spec counts, because one
// that was taken back cannot be told from none.
func mayForget(began, now *apiextensionsv1.CustomResourceDefinition) bool {
	return began.UID == now.UID && began.Generation == now.Generation &&
		slices.Equal(began.Status.StoredVersions, now.Status.StoredVersions)
}
