package controlplane

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Observed is what the passage sees of one IstioRevision.
type Observed struct {
	Revision *v1.IstioRevision
	// Tag is one of the same name, if there is any.
	Tag *v1.IstioRevisionTag
	// Namespace tells whether the namespace exists.
	Namespace bool
	// Istiod is the release of the control plane.
	Istiod installer.Release
	// Base is the release that all revisions share. One of them manages the release, and the others wait for it.
	Base        installer.Release
	ManagesBase bool
	// BaseManager is the name of the IstioRevision that manages Base; empty if none can.
	BaseManager string
	// Validator is managed by the default revision.
	Validator installer.Release
	IsDefault bool
	// ObsoleteReleases are shared releases that this revision has to remove.
	ObsoleteReleases []release.State
	Deployments      []appsv1.Deployment
	// DeploymentsErr is why the Deployments could not be read.
	DeploymentsErr error
	Usage          usage.Usage
}

// reported tells whether the latest spec was once fully applied.
func (o Observed) reported() bool {
	return installer.Reported(o.Revision.Generation, o.Revision.Status.Conditions)
}

// Owner is the IstioRevision.
func (o Observed) Owner() client.Object { return o.Revision }

// ReleaseOf is the release that a step was planned for: a shared one, or that of the control plane.
func (o Observed) ReleaseOf(step passage.Step) installer.Release {
	for _, shared := range []installer.Release{o.Base, o.Validator} {
		for _, s := range installer.Steps(shared, false) {
			if s.Object == step.Object {
				return shared
			}
		}
	}
	return o.Istiod
}

// ReadError is why the Deployments could not be read.
func (o Observed) ReadError() error { return o.DeploymentsErr }

// UsageKnown tells whether the users of the revision could be counted.
func (o Observed) UsageKnown() bool { return o.Usage.Known() }

func (o Observed) beingDeleted() bool { return !o.Revision.DeletionTimestamp.IsZero() }

// observe reads an IstioRevision and its releases. With fresh, Deployments are read from the API server: after a write, the
// cache may lag behind.
func (r *reconciler) observe(ctx context.Context, name string, fresh bool) (Observed, error) {
	o := Observed{Revision: &v1.IstioRevision{}, Usage: r.Usage.Revision(name)}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, o.Revision); err != nil {
		return o, fmt.Errorf("get IstioRevision %s: %w", name, err)
	}
	var err error
	if o.Tag, err = r.tag(ctx, name); err != nil {
		return o, err
	}
	if o.Namespace, err = r.Objects.NamespaceExists(ctx, o.Revision.Spec.Namespace); err != nil {
		return o, err
	}
	candidates, err := r.candidates(ctx)
	if err != nil {
		return o, err
	}
	records := chartRecords(o.Revision, candidates)
	if o.Istiod, err = r.observeIstiod(ctx, o.Revision, records); err != nil {
		return o, err
	}
	if err := r.observeShared(ctx, &o, candidates, records); err != nil {
		return o, err
	}
	for _, observed := range []*installer.Release{&o.Istiod, &o.Base, &o.Validator} {
		observed.SkipRefused(o.Revision.Status.Conditions, o.Revision.Generation, r.Now())
	}
	o.Deployments, o.DeploymentsErr = r.deployments(ctx, o.Istiod.Deployments, fresh)
	return o, ctx.Err()
}

// deployments are those that the charts ask for, as far as they exist.
func (r *reconciler) deployments(ctx context.Context, wanted []client.ObjectKey, fresh bool) ([]appsv1.Deployment, error) {
	var found []appsv1.Deployment
	for _, key := range wanted {
		deployment, err := r.Objects.Deployment(ctx, key)
		if fresh {
			deployment, err = kube.GetIfExists(ctx, r.live, key, &appsv1.Deployment{})
		}
		if err != nil {
			return nil, err
		}
		if deployment != nil {
			found = append(found, *deployment)
		}
	}
	return found, nil
}

func (r *reconciler) tag(ctx context.Context, name string) (*v1.IstioRevisionTag, error) {
	return kube.GetIfExists(ctx, r.Client, client.ObjectKey{Name: name}, &v1.IstioRevisionTag{})
}

func chartRecords(revision *v1.IstioRevision, candidates []RevisionCandidate) installer.ChartRecords {
	records := installer.ChartRecords{Revision: revision}
	for _, c := range candidates {
		records.Others = append(records.Others, c.IstioRevision)
	}
	return records
}

func (r *reconciler) observeIstiod(ctx context.Context, revision *v1.IstioRevision, records installer.ChartRecords) (installer.Release, error) {
	wanted := release.Spec{
		Name:      istiodRelease(revision.Name),
		Namespace: revision.Spec.Namespace,
		Owner:     metav1.NewControllerRef(revision, v1.GroupVersion.WithKind(v1.IstioRevisionKind)),
		Values:    Values(revision),

		ChartVersion: revision.Spec.Version,
	}
	observed, err := r.ObserveRelease(ctx, wanted, "istiod", revision.DeletionTimestamp.IsZero(), records)
	if err == nil && observed.Wanted == nil && observed.State.Exists {
		// Without a chart, what was installed tells whether istiod serves.
		observed.Deployments, err = r.Objects.DeploymentsOfOwner(ctx, wanted.Namespace, revision)
	}
	return observed, err
}

func (r *reconciler) observeShared(ctx context.Context, o *Observed, candidates []RevisionCandidate, records installer.ChartRecords) error {
	defaultTag, err := r.tag(ctx, v1.DefaultRevision)
	if err != nil {
		return err
	}
	bases, err := r.Releases.Releases(ctx, BaseRelease)
	if err != nil {
		return err
	}
	validators, err := r.Releases.Releases(ctx, ValidatorRelease)
	if err != nil {
		return err
	}
	decided := decideShared(candidates, defaultTag, bases)
	if decided.BaseManager != nil {
		o.BaseManager, o.ManagesBase = decided.BaseManager.Name, decided.BaseManager.UID == o.Revision.UID
	}
	o.IsDefault = decided.Default != nil && decided.Default.UID == o.Revision.UID
	named := sets.Set[string]{}
	if o.beingDeleted() {
		if named, err = r.Objects.NamespacesInObjects(ctx, BaseRelease); err != nil {
			return err
		}
	}
	o.ObsoleteReleases = obsoleteReleases(o, decided, bases, validators, named)
	if decided.BaseManager == nil && len(bases) > 0 {
		o.Base = installer.Release{Name: BaseRelease, Namespace: bases[0].Namespace, State: bases[0]}
	}
	if decided.BaseManager != nil {
		o.Base, err = r.ObserveRelease(ctx, release.Spec{
			Name:         BaseRelease,
			Namespace:    decided.Namespace,
			Values:       baseValues(decided.BaseManager, decided.Namespace),
			ChartVersion: decided.Version,
			// CRDs outlive the releases that bring them, ours and those of others.
			TakeOwnership: true,
		}, "base", o.ManagesBase, records)
	}
	if err == nil && o.IsDefault {
		o.Validator, err = r.ObserveRelease(ctx, release.Spec{
			Name:      ValidatorRelease,
			Namespace: decided.Default.Spec.Namespace,
			// A webhook without a server must not outlive the revision, even if its record is gone.
			Owner:        metav1.NewControllerRef(decided.Default, v1.GroupVersion.WithKind(v1.IstioRevisionKind)),
			Values:       validatorValues(decided.Default),
			ChartVersion: decided.Default.Spec.Version,
			Only:         release.Templates("defaultrevision-"),
			// There is only one, and it may have belonged to another release.
			TakeOwnership: true,
		}, "base", true, records)
	}
	return err
}

// obsoleteReleases are shared releases in former namespaces, or that are not needed any more. The last revision to be
// deleted removes them. One that is deleted takes the validator of its namespace along, whose webhook is deleted with it. The last
// one of a namespace takes the base release along if no revision can install another one now and, as with CRDs that are not Helm's,
// no cluster-scoped object says where it is: its record does not count once the revision is gone.
func obsoleteReleases(o *Observed, decided shared, bases, validators []release.State, named sets.Set[string]) []release.State {
	var obsolete []release.State
	last := !decided.Needed
	for _, state := range bases {
		forgotten := o.beingDeleted() && decided.BaseManager == nil && state.Namespace == o.Revision.Spec.Namespace &&
			state.Namespace != decided.Namespace && !named.Has(state.Namespace)
		if last || forgotten || o.ManagesBase && state.Namespace != decided.Namespace {
			obsolete = append(obsolete, state)
		}
	}
	for _, state := range validators {
		elsewhere := decided.Default == nil || decided.Default.Spec.Namespace != state.Namespace
		goesAlong := elsewhere && o.beingDeleted() && state.Namespace == o.Revision.Spec.Namespace
		unneeded := decided.Default == nil && (last || o.ManagesBase)
		if goesAlong || unneeded || o.IsDefault && elsewhere {
			obsolete = append(obsolete, state)
		}
	}
	return obsolete
}

// candidates are all revisions, this one included.
func (r *reconciler) candidates(ctx context.Context) ([]RevisionCandidate, error) {
	var list v1.IstioRevisionList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list IstioRevisions: %w", err)
	}
	has := r.Charts.Has(ctx)
	var candidates []RevisionCandidate
	for i := range list.Items {
		revision := &list.Items[i]
		exists, err := r.Objects.NamespaceExists(ctx, revision.Spec.Namespace)
		if err != nil {
			return nil, err
		}
		tag, err := r.tag(ctx, revision.Name)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, RevisionCandidate{
			IstioRevision: revision,
			Installable: exists && has(revision.Spec.Version) && !installer.Paused(revision) &&
				(tag == nil || !NameHolder(revision, tag)),
		})
	}
	return candidates, nil
}
