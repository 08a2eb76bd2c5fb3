package workload

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// revisionMatch is how the revision or tag that a label names relates to the target.
type revisionMatch uint8

const (
	// unknown is neither a revision nor a tag.
	unknown revisionMatch = iota
	// current is the target itself.
	current
	// outdated is another revision of the same Istio.
	outdated
	// following is a tag that follows the Istio, and leads to the target or will in a moment.
	following
	// held is a tag that follows the Istio and does not move to the target.
	held
	// pinned is a tag that is fixed to a revision.
	pinned
	// foreign is a revision or tag of another owner.
	foreign
)

// nameMatch is the match of a name, with a description for messages.
type nameMatch struct {
	revisionMatch
	description string
	// notMoved is set for a tag that follows the Istio and has not moved to the target yet; failing if the tag says why.
	notMoved *passage.Reason
	failing  bool
}

// matchOf is the match of a name. A revision that was deleted is recognised by its name. One of a higher version than the
// target may be created later, and is unknown.
func (p *planner) matchOf(name string) nameMatch {
	means, known := p.matches[name]
	if known || p.Target.Version == "" {
		return means
	}
	text, own := strings.CutPrefix(name, p.Istio.Name+"-")
	if !own || !versioned.MatchString(text) {
		return means
	}
	was, err := semver.NewVersion(strings.ReplaceAll(text, "-", "."))
	target, targetErr := semver.NewVersion(p.Target.Version)
	if err == nil && targetErr == nil && was.LessThan(target) {
		return nameMatch{revisionMatch: outdated}
	}
	return means
}

// versioned matches the version in the name of a revision.
var versioned = regexp.MustCompile(`^v\d+-\d+-\d+$`)

// matchNames are the matches of all revisions and tags.
func (o Observed) matchNames() map[string]nameMatch {
	names := make(map[string]nameMatch, len(o.Revisions)+len(o.Tags)+1)
	for i := range o.Revisions {
		revision := &o.Revisions[i]
		if isNameTaken(revision.Status.Conditions) {
			continue
		}
		switch {
		case revision.Name == o.Target.Name:
			names[revision.Name] = nameMatch{revisionMatch: current}
		case metav1.IsControlledBy(revision, o.Istio):
			names[revision.Name] = nameMatch{revisionMatch: outdated}
		default:
			names[revision.Name] = nameMatch{revisionMatch: foreign, description: describeOwner(revision)}
		}
	}
	if o.Target.Name != "" {
		names[o.Target.Name] = nameMatch{revisionMatch: current}
	}
	for i := range o.Tags {
		tag := &o.Tags[i]
		if _, taken := names[tag.Name]; taken || isNameTaken(tag.Status.Conditions) {
			continue
		}
		switch ref := tag.Spec.TargetRef; {
		case ref.Kind == v1.IstioRevisionKind:
			names[tag.Name] = nameMatch{revisionMatch: pinned, description: fmt.Sprintf("IstioRevisionTag %s, which is fixed to IstioRevision %s", tag.Name, ref.Name)}
		case ref.Name == o.Istio.Name && !tag.DeletionTimestamp.IsZero():
			names[tag.Name] = nameMatch{revisionMatch: held, description: fmt.Sprintf("IstioRevisionTag %s, which is being deleted", tag.Name)}
		case !o.follows(tag):
			names[tag.Name] = nameMatch{revisionMatch: foreign, description: fmt.Sprintf("IstioRevisionTag %s, which follows %s %s", tag.Name, ref.Kind, ref.Name)}
		default:
			names[tag.Name] = o.matchFollowing(tag)
		}
	}
	return names
}

// matchFollowing is the match of a tag that follows the Istio.
func (o Observed) matchFollowing(tag *v1.IstioRevisionTag) nameMatch {
	match := nameMatch{revisionMatch: following, description: fmt.Sprintf("IstioRevisionTag %s, which follows Istio %s", tag.Name, o.Istio.Name)}
	if tag.Status.IstioRevision == o.Target.Name {
		return match
	}
	if why := tagHold(tag); why != "" {
		return nameMatch{revisionMatch: held, description: fmt.Sprintf("IstioRevisionTag %s, which %s", tag.Name, why)}
	}
	if o.Target.Hold != nil || o.Target.Name != o.Istio.Status.ActiveRevisionName {
		// Tags move when the target is active and ready, before their workloads do.
		return match
	}
	why := ""
	// The target is ready: a tag that still waits for it moves in a moment.
	if reconciled := meta.FindStatusCondition(tag.Status.Conditions, string(v1.ConditionReconciled)); reconciled != nil &&
		reconciled.Status == metav1.ConditionFalse && reconciled.Reason != string(v1.ReasonIstiodNotReady) {
		why, match.failing = ": "+reconciled.Message, true
	}
	match.notMoved = passage.NewReason(v1.ReasonTagNotMoved, "IstioRevisionTag %s has not moved yet to %s%s", tag.Name, o.Target.Name, why)
	return match
}

func describeOwner(revision *v1.IstioRevision) string {
	owner := metav1.GetControllerOfNoCopy(revision)
	if owner == nil {
		return fmt.Sprintf("IstioRevision %s, which has no owner", revision.Name)
	}
	return fmt.Sprintf("IstioRevision %s, which belongs to %s %s", revision.Name, owner.Kind, owner.Name)
}

// isNameTaken tells whether another revision or tag has the name.
func isNameTaken(conditions []metav1.Condition) bool {
	reconciled := meta.FindStatusCondition(conditions, string(v1.ConditionReconciled))
	return reconciled != nil && reconciled.Status == metav1.ConditionFalse &&
		reconciled.Reason == string(v1.ReasonNameAlreadyExists)
}

func (o Observed) follows(tag *v1.IstioRevisionTag) bool {
	return tag.Spec.TargetRef.Kind == v1.IstioKind && tag.Spec.TargetRef.Name == o.Istio.Name &&
		tag.DeletionTimestamp.IsZero()
}

// tagHold is why a tag does not move by itself, or empty.
func tagHold(tag *v1.IstioRevisionTag) string {
	switch {
	case installer.Paused(tag):
		return fmt.Sprintf("is paused; resume with `fairlead resume istiorevisiontag %s`", tag.Name)
	case isNameTaken(tag.Status.Conditions):
		return "has a name that is taken by an IstioRevision"
	}
	return ""
}
