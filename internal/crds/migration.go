package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// Progress, if set, is called after every page, and at the end.
	Progress func(Migration)
	// Refused, if set, is called for every object that could not be rewritten.
	Refused func(object string, err error)
	// PageSize is how many objects are listed at a time. The default is 500.
	PageSize int64
	Log      logr.Logger
}

const (
	defaultPageSize = 500
	defaultRate     = 50
)

// Migration is the progress of the stored objects of one CRD.
type Migration struct {
	Name string `json:"name"`
	// From are the other versions in which objects may be stored; empty means that there was nothing to do.
	From []string `json:"from,omitempty"`
	// To is the storage version.
	To string `json:"to,omitempty"`
	// Rewritten and Failed objects, and those that remain as far as known.
	Rewritten int   `json:"rewritten"`
	Failed    int   `json:"failed"`
	Remaining int64 `json:"-"`
	// Done holds when no object is stored in another version.
	Done bool `json:"done"`
}

// ErrNotMigrated means that some objects could not be rewritten. They stay readable, and the next migration retries them.
var ErrNotMigrated = errors.New("objects are still stored in an older version")

// Migrate has every object stored in the storage version of its CRD, without changing it, and then removes the older
// versions from status.storedVersions. It starts from the beginning each time: an object that is stored correctly already
// costs a request and no write.
func Migrate(ctx context.Context, cfg *rest.Config, opts MigrateOptions) ([]Migration, error) {
	crds, err := selectCRDs(opts.CRDs, opts.Names)
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
	opts.Rate, opts.PageSize = cmp.Or(opts.Rate, defaultRate), cmp.Or(opts.PageSize, defaultPageSize)
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
		migration, err := m.migrate(ctx, crd.Name)
		if apierrors.IsNotFound(err) && len(opts.Names) == 0 {
			continue // all CRDs are migrated that exist
		}
		if ctx.Err() != nil {
			return all, fmt.Errorf("migrate the stored objects of CRD %s: %w", crd.Name, context.Cause(ctx))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("migrate the stored objects of CRD %s: %w", crd.Name, err))
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

// migrate rewrites all objects of a CRD. A CRD that has changed meanwhile may have had another storage version in between,
// so its objects are rewritten again.
func (m *migrator) migrate(ctx context.Context, name string) (Migration, error) {
	for {
		crd, err := m.crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return Migration{Name: name}, err
		}
		progress := Migration{Name: name, To: storageVersion(crd), From: storedOtherThan(crd, storageVersion(crd))}
		if ok, why := established(crd); !ok {
			return progress, errors.New(why)
		}
		if progress.Done = len(progress.From) == 0; !progress.Done {
			if err := m.rewriteAll(ctx, crd, &progress); err != nil {
				return progress, err
			}
			if progress.Failed > 0 {
				return progress, fmt.Errorf("%w: %d of %d: see the errors above, and try again",
					ErrNotMigrated, progress.Failed, progress.Failed+progress.Rewritten)
			}
			if progress.Done, err = m.finish(ctx, crd); err != nil {
				return progress, err
			}
		}
		if progress.Done {
			m.opts.Progress(progress)
			return progress, nil
		}
		m.opts.Log.Info("the custom resource definition has changed, migrating its objects again", "name", name)
	}
}

// storedOtherThan are the other versions in which objects of a CRD may be stored.
func storedOtherThan(crd *apiextensionsv1.CustomResourceDefinition, version string) []string {
	return slices.DeleteFunc(slices.Clone(crd.Status.StoredVersions), func(stored string) bool { return stored == version })
}

// finish removes the older versions from status.storedVersions, unless the CRD has changed since its objects were rewritten.
func (m *migrator) finish(ctx context.Context, began *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for {
		now, err := m.crds.Get(ctx, began.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if !isSameCRD(began, now) {
			return false, nil
		}
		_, err = m.crds.Patch(ctx, began.Name, types.MergePatchType, storedVersionsPatch(now), metav1.PatchOptions{FieldManager: FieldOwner}, "status")
		switch {
		case err == nil:
			return true, nil
		case !apierrors.IsConflict(err):
			return false, fmt.Errorf("drop %v from status.storedVersions: %w", storedOtherThan(now, storageVersion(now)), err)
		}
	}
}

// isSameCRD tells whether a CRD is unchanged since its objects were rewritten. A change of its spec counts even if it was
// reverted since.
func isSameCRD(began, now *apiextensionsv1.CustomResourceDefinition) bool {
	return began.UID == now.UID && began.Generation == now.Generation &&
		slices.Equal(began.Status.StoredVersions, now.Status.StoredVersions)
}
