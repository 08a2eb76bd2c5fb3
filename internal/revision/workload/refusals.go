package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// Refusal is why an object does not let itself be written. It holds for one target until somebody asks to try again, or
// until the API server would take it.
type Refusal struct {
	passage.Reason
	At time.Time
	// retryAt is when to ask the API server again. What it has no say in is not asked, and holds until the object changes.
	retryAt time.Time
	// version is that of the object, and retry the request to try again that was known.
	version, istio, target, retry string
}

// versionOf changes when what a Deployment asks for does.
func versionOf(d *appsv1.Deployment) string { return strconv.FormatInt(d.Generation, 10) }

// choiceOf changes when what a namespace chooses does.
func choiceOf(ns inventory.Namespace) string {
	return fmt.Sprintf("%q %q", ns.Labels[v1.LabelInjection], ns.Labels[v1.LabelRevision])
}

func versionsIn(picture inventory.Snapshot) map[types.UID]string {
	versions := make(map[types.UID]string, len(picture.Namespaces)+len(picture.Deployments))
	for _, ns := range picture.Namespaces {
		versions[ns.UID] = choiceOf(ns)
	}
	for _, d := range picture.Deployments {
		versions[d.UID] = versionOf(d)
	}
	return versions
}

// failureStreak is since when, and until when, an object could not be written.
type failureStreak struct{ since, last time.Time }

// classifyError tells errors that concern one object, and would be the same next time, from those that do not.
func (w *writer) classifyError(o Observed, err error, uid types.UID, version, doing string, args ...any) (*Refusal, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	switch {
	case err == nil, apierrors.IsNotFound(err):
		delete(w.transient, uid)
		return nil, nil
	case isPermanentRefusal(err):
	case apierrors.IsConflict(err), isServerError(err):
		return nil, fmt.Errorf(doing+": %w", append(args, err)...)
	default:
		past, known := w.transient[uid]
		if !known || now.Sub(past.last) > transientTimeout {
			past.since = now
		}
		w.transient[uid] = failureStreak{past.since, now}
		if now.Sub(past.since) < transientTimeout {
			return nil, fmt.Errorf(doing+": %w", append(args, err)...)
		}
	}
	delete(w.transient, uid)
	return w.recordRefusal(o, uid, version, now.Add(dryRunInterval), passage.Because(v1.ReasonRefused, "the API server refused the change: %v", err)), nil
}

func (w *writer) recordRefusal(o Observed, uid types.UID, version string, due time.Time, why passage.Reason) *Refusal {
	refusal := Refusal{
		Reason: why, At: w.now(), retryAt: due, version: version, istio: o.Istio.Name, target: o.Target.Name, retry: o.retry(),
	}
	w.refused[uid] = refusal
	return &refusal
}

// addRefusals are those that still hold, as a plan takes them, and the marks that could not be written.
func (w *writer) addRefusals(o *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropStaleRefusals(*o)
	o.Unwritten = maps.Clone(w.unwritten)
	o.Refused = maps.Clone(w.refused)
	maps.DeleteFunc(o.Refused, func(_ types.UID, r Refusal) bool { return r.istio != o.Istio.Name })
}

// dropStaleRefusals lets go of what is over. Of what has changed, the API server is asked again: a Deployment that is scaled is no
// reason to begin anew.
func (w *writer) dropStaleRefusals(o Observed) {
	now := w.now()
	for uid, past := range w.relabels {
		if w.relabels[uid] = slices.DeleteFunc(past, func(r relabelRecord) bool { return now.Sub(r.at) > relabelWindow }); len(w.relabels[uid]) == 0 {
			delete(w.relabels, uid)
		}
	}
	if len(w.refused)+len(w.transient)+len(w.unwritten) == 0 {
		return
	}
	versions := versionsIn(o.Inventory)
	for uid, r := range w.refused {
		version, there := versions[uid]
		own := r.istio == o.Istio.Name
		switch {
		case own && r.retry != o.retry():
			delete(w.refused, uid)
			delete(w.relabels, uid)
		case !there, own && o.Target.Name != "" && r.target != o.Target.Name, version != r.version && r.retryAt.IsZero():
			delete(w.refused, uid)
		case version != r.version:
			r.version, r.retryAt = version, now
			w.refused[uid] = r
		}
	}
	maps.DeleteFunc(w.transient, func(uid types.UID, _ failureStreak) bool { return versions[uid] == "" })
	maps.DeleteFunc(w.unwritten, func(uid types.UID, _ Mark) bool { return versions[uid] == "" })
}

// isPermanentRefusal holds for what an API server would say again of the same object.
func isPermanentRefusal(err error) bool {
	return apierrors.IsForbidden(err) && !isMissingPermission(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// isMissingPermission holds for what we may not do, as opposed to what nobody may. An API server that has just started says so
// of everything until it has read who may do what.
func isMissingPermission(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is forbidden: User ")
}

// isServerError holds for what has nothing to do with the object: nobody answers, or is able to.
func isServerError(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err)
}

// relabelRecord is a move of the label of a namespace.
type relabelRecord struct {
	to string
	at time.Time
}

// How often a label is moved to the same revision, within what time, before it is left to who sets it back.
const (
	maxRelabels   = 3
	relabelWindow = time.Hour
)

// contestedRefusal tells whether somebody sets the label of a namespace back each time that it was moved. Pods that start in
// between would change sides with every turn.
func (w *writer) contestedRefusal(o Observed, seen inventory.Namespace, step passage.Step) *Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := 0
	for _, r := range w.relabels[seen.UID] {
		if r.to == step.To && w.now().Sub(r.at) <= relabelWindow {
			turns++
		}
	}
	if turns < maxRelabels {
		return nil
	}
	return w.recordRefusal(o, seen.UID, choiceOf(seen), time.Time{}, passage.Because(v1.ReasonContested,
		"label was moved to %s %d times, and another client sets it back to %s each time; change the label at its source, such as a manifest in git",
		step.To, turns, step.From))
}

// recordRelabel notes that the label of a namespace was moved.
func (w *writer) recordRelabel(uid types.UID, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relabels[uid] = append(slices.DeleteFunc(w.relabels[uid], func(r relabelRecord) bool { return r.to != to }), relabelRecord{to, w.now()})
}
