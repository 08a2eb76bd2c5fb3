package workload

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// Refusal is why a change of an object was refused. It holds for one target until a retry is requested, or until a dry run
// is accepted.
type Refusal struct {
	passage.Reason
	At time.Time
	// retryAt is when the next dry run is due; zero for a refusal of our own, which holds until the object changes.
	retryAt time.Time
	// version is that of the object, and retry the last retry request at that time.
	version, istio, target, retry string
}

// versionOf changes with the spec of a workload.
func versionOf(w *inventory.Workload) string { return strconv.FormatInt(w.Generation, 10) }

// choiceOf changes with the labels that select a revision.
func choiceOf(ns inventory.Namespace) string {
	return fmt.Sprintf("%q %q", ns.Labels[v1.LabelInjection], ns.Labels[v1.LabelRevision])
}

func objectVersions(snapshot inventory.Snapshot) map[types.UID]string {
	versions := make(map[types.UID]string, len(snapshot.Namespaces)+len(snapshot.Workloads))
	for _, ns := range snapshot.Namespaces {
		versions[ns.UID] = choiceOf(ns)
	}
	for _, w := range snapshot.Workloads {
		versions[w.UID] = versionOf(w)
	}
	return versions
}

// failureStreak is the time of the first and the last failed write of an object.
type failureStreak struct{ since, last time.Time }

// classifyError separates refusals of one object, which would be the same next time, from errors that are retried.
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
		Reason: why, At: w.now(), retryAt: due, version: version, istio: o.Istio.Name, target: o.Target.Name, retry: o.retryRequest(),
	}
	w.refused[uid] = refusal
	return &refusal
}

// addRefusals adds the refusals that still hold, and the unwritten marks, to what was observed.
func (w *writer) addRefusals(o *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropStaleRefusals(*o)
	o.Unwritten = maps.Clone(w.unwritten)
	o.Refused = maps.Clone(w.refused)
	maps.DeleteFunc(o.Refused, func(_ types.UID, r Refusal) bool { return r.istio != o.Istio.Name })
}

// dropStaleRefusals removes refusals that do not hold any more. A changed object is tried again as a dry run: scaling a
// workload does not lift a refusal.
func (w *writer) dropStaleRefusals(o Observed) {
	now := w.now()
	w.relabels.Prune(now, relabelWindow)
	if len(w.refused)+len(w.transient)+len(w.unwritten) == 0 {
		return
	}
	versions := objectVersions(o.Inventory)
	for uid, r := range w.refused {
		version, there := versions[uid]
		own := r.istio == o.Istio.Name
		switch {
		case own && r.retry != o.retryRequest():
			delete(w.refused, uid)
			w.relabels.Forget(func(k relabelKey) bool { return k.namespace == uid })
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

// isPermanentRefusal tells whether the API server would refuse the same change again. An API server that has just started
// denies everything until it has read its RBAC rules.
func isPermanentRefusal(err error) bool {
	return kube.IsRejected(err) && !kube.IsMissingPermission(err)
}

// isServerError tells whether the error has nothing to do with the object: the server is down or overloaded.
func isServerError(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err)
}

// relabelKey is a namespace and the revision that its label was set to.
type relabelKey struct {
	namespace types.UID
	to        string
}

// A label that was set to the same revision maxRelabels times within relabelWindow is contested: another client sets it back.
const (
	maxRelabels   = 3
	relabelWindow = time.Hour
)

// contestedRefusal refuses to change the label of a namespace again that another client sets back each time. Pods that
// start in between would get another revision each time.
func (w *writer) contestedRefusal(o Observed, seen inventory.Namespace, step passage.Step) *Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := len(w.relabels.Recent(relabelKey{seen.UID, step.To}, w.now(), relabelWindow))
	if turns < maxRelabels {
		return nil
	}
	return w.recordRefusal(o, seen.UID, choiceOf(seen), time.Time{}, passage.Because(v1.ReasonContested,
		"label was moved to %s %d times, and another client sets it back to %s each time; change the label at its source, such as a manifest in git",
		step.To, turns, step.From))
}

// recordRelabel records that the label of a namespace was changed. A change to another revision starts anew.
func (w *writer) recordRelabel(uid types.UID, to string) {
	w.relabels.Forget(func(k relabelKey) bool { return k.namespace == uid && k.to != to })
	w.relabels.Record(relabelKey{uid, to}, w.now(), relabelWindow)
}
