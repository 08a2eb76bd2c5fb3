package tag

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/controlplane"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

const releaseSuffix = "-revisiontag"

// Observed is what the passage sees of one IstioRevisionTag.
type Observed struct {
	Tag *v1.IstioRevisionTag
	// Istio is the target of a tag that follows an Istio, if it exists.
	Istio *v1.Istio
	// Target is the revision to point to, and Current the one that is pointed to; nil where there is none.
	Target, Current *v1.IstioRevision
	// SameNameRevision is an IstioRevision that has the name of the tag.
	SameNameRevision *v1.IstioRevision
	SameNameUsage    usage.Usage
	// Release points to the target if that is ready, and otherwise to the current revision.
	Release installer.Release
	// MissingNamespace is the namespace of the revision to point to, if it does not exist.
	MissingNamespace string
	// ObsoleteReleases are releases in namespaces where the tag has pointed before.
	ObsoleteReleases []release.State
	Usage            usage.Usage
}

// reported tells whether the tag has once pointed to its current target.
func (o Observed) reported() bool {
	to := o.pointsTo()
	return to != nil && o.Tag.Status.IstioRevision == to.Name && installer.Reported(o.Tag.Generation, o.Tag.Status.Conditions)
}

// Owner is the IstioRevisionTag.
func (o Observed) Owner() client.Object { return o.Tag }

// ReleaseOf is the only release of a tag.
func (o Observed) ReleaseOf(passage.Step) installer.Release { return o.Release }

// ReadError is nil: a tag that cannot be read in full is not observed.
func (o Observed) ReadError() error { return nil }

// UsageKnown tells whether the users of the tag could be counted.
func (o Observed) UsageKnown() bool { return o.Usage.Known() }

func (o Observed) beingDeleted() bool { return !o.Tag.DeletionTimestamp.IsZero() }

// pointsTo is the revision that the webhook should lead to right now.
func (o Observed) pointsTo() *v1.IstioRevision {
	if whileTargetNotReady(o) == nil {
		return o.Target
	}
	return o.Current
}

func (r *reconciler) observe(ctx context.Context, name string, _ bool) (Observed, error) {
	o := Observed{Tag: &v1.IstioRevisionTag{}, Usage: r.Usage.Tag(name)}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, o.Tag); err != nil {
		return o, fmt.Errorf("get IstioRevisionTag %s: %w", name, err)
	}
	var err error
	if o.SameNameRevision, err = r.revision(ctx, name); err != nil {
		return o, err
	}
	if o.SameNameRevision != nil {
		o.SameNameUsage = r.Usage.Revision(name)
	}
	if o.Current, err = r.revision(ctx, o.Tag.Status.IstioRevision); err != nil {
		return o, err
	}
	if err := r.observeTarget(ctx, &o); err != nil {
		return o, err
	}
	return o, r.observeRelease(ctx, &o)
}

func (r *reconciler) observeTarget(ctx context.Context, o *Observed) error {
	target := o.Tag.Spec.TargetRef.Name
	if o.Tag.Spec.TargetRef.Kind == v1.IstioKind {
		istio, err := kube.GetIfExists(ctx, r.Client, client.ObjectKey{Name: target}, &v1.Istio{})
		if err != nil || istio == nil {
			return err
		}
		o.Istio, target = istio, istio.Status.ActiveRevisionName
	}
	var err error
	o.Target, err = r.revision(ctx, target)
	return err
}

// revision finds one by name, or nil if there is none.
func (r *reconciler) revision(ctx context.Context, name string) (*v1.IstioRevision, error) {
	if name == "" {
		return nil, nil
	}
	return kube.GetIfExists(ctx, r.Client, client.ObjectKey{Name: name}, &v1.IstioRevision{})
}

func (r *reconciler) observeRelease(ctx context.Context, o *Observed) error {
	name := o.Tag.Name + releaseSuffix
	states, err := r.Releases.Releases(ctx, name)
	if err != nil {
		return err
	}
	// The record of a release is deleted with its namespace, but its webhook is not.
	left, err := r.Objects.ReleasesOfOwner(ctx, o.Tag)
	if err != nil {
		return err
	}
	if namespace := o.Tag.Status.IstiodNamespace; namespace != "" {
		// An uninstall that was interrupted may have left the record, and neither a webhook nor a revision says that it counts.
		reported, err := r.Releases.State(ctx, namespace, name)
		if err != nil {
			return err
		}
		if reported.Exists {
			left = append(left, reported)
		}
	}
	for _, state := range left {
		if !slices.ContainsFunc(states, func(s release.State) bool { return s.Namespace == state.Namespace }) {
			states = append(states, state)
		}
	}
	to := o.pointsTo()
	if o.beingDeleted() || whileNameIsTaken(*o) != nil || to == nil {
		// Nothing new is installed. Releases of a tag that lost its name block the revision of that name.
		o.Release = installer.Release{Name: name}
		if o.beingDeleted() || whileNameIsTaken(*o) != nil {
			o.ObsoleteReleases = states
		}
		return nil
	}
	exists, err := r.Objects.NamespaceExists(ctx, to.Spec.Namespace)
	if err != nil {
		return err
	}
	if !exists {
		o.Release, o.MissingNamespace = installer.Release{Name: name}, to.Spec.Namespace
		return nil
	}
	for _, state := range states {
		if state.Namespace != to.Spec.Namespace {
			o.ObsoleteReleases = append(o.ObsoleteReleases, state)
		}
	}
	o.Release, err = r.ObserveRelease(ctx, release.Spec{
		Name:      name,
		Namespace: to.Spec.Namespace,
		Owner:     metav1.NewControllerRef(o.Tag, v1.GroupVersion.WithKind(v1.IstioRevisionTagKind)),
		Values:    values(to, o.Tag.Name),
		Only:      release.Templates("revision-tags"),

		ChartVersion: to.Spec.Version,
	}, "istiod", true, installer.ChartRecords{Revision: to})
	o.Release.SkipRefused(o.Tag.Status.Conditions, o.Tag.Generation, r.Now())
	return err
}

// values render nothing but the tag in the templates that are picked for it.
func values(revision *v1.IstioRevision, tag string) map[string]any {
	values := controlplane.Values(revision)
	values["revisionTags"] = []any{tag}
	return values
}
