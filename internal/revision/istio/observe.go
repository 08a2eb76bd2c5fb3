package istio

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Observed is what the passage sees of one Istio.
type Observed struct {
	Istio *v1.Istio
	// Revisions are all in the cluster, by name, because any of them may hold a name that the Istio wants.
	Revisions []Revision
	// Tags are those that follow the Istio, by name.
	Tags []v1.IstioRevisionTag
	// DefaultTag is the tag called "default", whatever it follows, if there is one.
	DefaultTag *v1.IstioRevisionTag

	Charts Charts
	Usage  UsageReader
	// Unresolved are names in labels that belong to no revision and no tag. Commands leave them to the operator.
	Unresolved []usage.NameUsage
}

// Charts are the versions that can be installed, or why they cannot be listed.
type Charts struct {
	Versions []string
	Err      error
	// UseReportedError takes a chart error from the status of the Istio: commands cannot read the operator's charts.
	UseReportedError bool
}

// UsageReader tells what uses a revision or a tag.
type UsageReader interface {
	Revision(name string) usage.Usage
	Tag(name string) usage.Usage
}

// Revision is an IstioRevision and, of one that belongs to the Istio, the part of its spec that this passage wrote.
// Others may have added fields; those are theirs, and server-side apply would not remove them.
type Revision struct {
	*v1.IstioRevision
	Written v1.IstioRevisionSpec
}

// Observe reads an Istio, its revisions and its tags.
func Observe(ctx context.Context, reader client.Reader, name string, charts Charts, users UsageReader) (Observed, error) {
	istio := &v1.Istio{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, istio); err != nil {
		return Observed{}, fmt.Errorf("get Istio %s: %w", name, err)
	}
	var list v1.IstioRevisionList
	if err := reader.List(ctx, &list); err != nil {
		return Observed{}, fmt.Errorf("list IstioRevisions: %w", err)
	}
	observed := Observed{Istio: istio, Charts: charts, Usage: users}
	for i := range list.Items {
		revision, err := revisionFor(istio, &list.Items[i])
		if err != nil {
			return Observed{}, err
		}
		observed.Revisions = append(observed.Revisions, revision)
	}
	slices.SortFunc(observed.Revisions, func(a, b Revision) int { return strings.Compare(a.Name, b.Name) })

	var tags v1.IstioRevisionTagList
	if err := reader.List(ctx, &tags); err != nil {
		return Observed{}, fmt.Errorf("list IstioRevisionTags: %w", err)
	}
	for _, tag := range tags.Items {
		if tag.Name == v1.DefaultRevision {
			observed.DefaultTag = &tag
		}
		if ref := tag.Spec.TargetRef; ref.Kind == v1.IstioKind && ref.Name == name {
			observed.Tags = append(observed.Tags, tag)
		}
	}
	slices.SortFunc(observed.Tags, func(a, b v1.IstioRevisionTag) int { return strings.Compare(a.Name, b.Name) })
	return observed, nil
}

// revisionFor is a revision, with the fields that this passage wrote if it belongs to the Istio. Those are read from managed
// fields, which is expensive.
func revisionFor(istio *v1.Istio, revision *v1.IstioRevision) (Revision, error) {
	seen := Revision{IstioRevision: revision}
	if !metav1.IsControlledBy(revision, istio) {
		return seen, nil
	}
	var err error
	if seen.Written, err = writtenBy(v1.FieldOwner, revision); err != nil {
		return seen, fmt.Errorf("see what was written to IstioRevision %s: %w", revision.Name, err)
	}
	return seen, nil
}

func writtenBy(owner string, revision *v1.IstioRevision) (v1.IstioRevisionSpec, error) {
	var written v1.IstioRevision
	specOnly := &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{ManagedFields: revision.ManagedFields},
		Spec:       revision.Spec,
	}
	err := managedfields.ExtractInto(specOnly, typed.DeducedParseableType, owner, &written, "")
	return written.Spec, err
}

func (o Observed) beingDeleted() bool { return !o.Istio.DeletionTimestamp.IsZero() }

// revision finds one by name, whatever its owner.
func (o Observed) revision(name string) *Revision {
	for i := range o.Revisions {
		if o.Revisions[i].Name == name {
			return &o.Revisions[i]
		}
	}
	return nil
}

// own are the revisions that belong to the Istio.
func (o Observed) own() []Revision {
	var own []Revision
	for _, r := range o.Revisions {
		if metav1.IsControlledBy(r, o.Istio) {
			own = append(own, r)
		}
	}
	return own
}

func (o Observed) owns(name string) bool {
	revision := o.revision(name)
	return revision != nil && metav1.IsControlledBy(revision, o.Istio)
}

// satisfiedVersion is the version of the active revision if it matches the requested one, and otherwise empty.
func (o Observed) satisfiedVersion(asked string) string {
	active := o.revision(o.Istio.Status.ActiveRevisionName)
	if active == nil || !metav1.IsControlledBy(active, o.Istio) {
		return ""
	}
	version := active.Spec.Version
	minor, alias := strings.CutSuffix(asked, "-latest")
	switch {
	case asked == "", asked == version:
		return version
	case alias && !isExactVersion(asked) && strings.HasPrefix(version, minor+"."):
		return version
	}
	return ""
}

func isIstio(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == v1.IstioKind && strings.HasPrefix(owner.APIVersion, v1.GroupVersion.Group+"/")
}
