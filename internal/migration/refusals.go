package migration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/migration/fleet"
	"github.com/fairlead/fairlead/internal/passage"
)

// Refusal is why an object does not let itself be written. It holds until the object changes, somebody asks to try again,
// or the API server would take it.
type Refusal struct {
	passage.Reason
	At time.Time
	// due is when to find out whether it still holds; zero for never.
	due time.Time
	// version is that of the object then, and retry the request to try again that was known.
	version, istio, retry string
}

// refusedBy begins what people read about a refusal of the API server.
const refusedBy = "the API server refused it: "

// versionOf changes when what a Deployment asks for does.
func versionOf(d *appsv1.Deployment) string { return strconv.FormatInt(d.Generation, 10) }

// heed tells errors that concern one object, and would be the same next time, from those that do not.
func (w *writer) heed(o Observed, err error, uid types.UID, version, doing string, args ...any) (*Refusal, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err):
		delete(w.failing, uid)
		return nil, nil
	case refusedForGood(err):
	case apierrors.IsConflict(err), ofTheServer(err):
		return nil, fmt.Errorf(doing+": %w", append(args, err)...)
	default:
		since, known := w.failing[uid]
		if !known {
			since = w.now()
			w.failing[uid] = since
		}
		if w.now().Sub(since) < troublePasses {
			return nil, fmt.Errorf(doing+": %w", append(args, err)...)
		}
	}
	delete(w.failing, uid)
	return w.refuse(o, uid, version, w.now().Add(probeEvery), passage.Because(v1.ReasonRefused, "%s%v", refusedBy, err)), nil
}

func (w *writer) refuse(o Observed, uid types.UID, version string, due time.Time, why passage.Reason) *Refusal {
	refusal := Refusal{Reason: why, At: w.now(), due: due, version: version, istio: o.Istio.Name, retry: o.retry()}
	w.refused[uid] = refusal
	return &refusal
}

// refusals are those that still hold, as a plan takes them, and the marks that could not be written.
func (w *writer) refusals(o *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.Refused, o.Unwritten = map[types.UID]Refusal{}, maps.Clone(w.unwritten)
	if len(w.refused) == 0 {
		return
	}
	versions := versionsIn(o.Fleet)
	for uid, r := range w.refused {
		if versions[uid] != r.version || r.istio == o.Istio.Name && r.retry != o.retry() {
			delete(w.refused, uid)
			delete(w.relabels, uid)
			continue
		}
		o.Refused[uid] = r
	}
}

// probeEvery is how often the API server is asked again about what it refused: policies change too.
const probeEvery = 15 * time.Minute

// probe finds out, without writing anything, whether the API server would take now what it refused before, and tells
// whether anything has changed thereby.
func (w *writer) probe(ctx context.Context, o Observed, failed []passage.Step) bool {
	changed := false
	for _, step := range failed {
		uid, c := o.changeOf(step, w.now())
		refusal, found := o.Refused[uid]
		if !found || refusal.due.IsZero() || w.now().Before(refusal.due) {
			continue
		}
		err := w.patch(ctx, c, client.DryRunAll)
		w.mu.Lock()
		if changed = changed || err == nil; err == nil {
			delete(w.refused, uid)
		} else {
			refusal.due = w.now().Add(probeEvery)
			w.refused[uid] = refusal
		}
		w.mu.Unlock()
	}
	return changed
}

// changeOf is how a step would be carried out, and on what.
func (o Observed) changeOf(step passage.Step, now time.Time) (types.UID, patchable) {
	if step.Object.Kind == kindNamespace {
		seen := o.Fleet.Namespaces[step.Object.Name]
		return seen.UID, relabelOf(seen, step)
	}
	seen := deploymentOf(o.Fleet, step.Object)
	return seen.UID, moveOf(o, seen, step, o.run(), now)
}

// nextProbe is when the first refusal is to be looked at; zero if none is.
func (w *writer) nextProbe() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next time.Time
	for _, r := range w.refused {
		next = sooner(next, r.due)
	}
	return next
}

func versionsIn(picture fleet.Picture) map[types.UID]string {
	versions := make(map[types.UID]string, len(picture.Namespaces)+len(picture.Deployments))
	for _, ns := range picture.Namespaces {
		versions[ns.UID] = ns.ResourceVersion
	}
	for _, d := range picture.Deployments {
		versions[d.UID] = versionOf(d)
	}
	return versions
}

// relabelling is a move of the label of a namespace.
type relabelling struct {
	to string
	at time.Time
}

// How often a label is moved to the same revision, within what time, before it is left to who sets it back.
const (
	contests      = 3
	contestWithin = time.Hour
)

// contested notes that the label of a namespace is about to be moved, and tells whether somebody else sets it back each
// time. Pods that start in between would change sides with every turn.
func (w *writer) contested(o Observed, seen fleet.Namespace, step passage.Step) *Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	past := slices.DeleteFunc(w.relabels[seen.UID], func(r relabelling) bool {
		return r.to != step.To || now.Sub(r.at) > contestWithin
	})
	if len(past) >= contests {
		return w.refuse(o, seen.UID, seen.ResourceVersion, time.Time{}, passage.Because(v1.ReasonContested,
			"its label was moved to %s %d times, and somebody sets it back to %s each time; change it where that comes from, such as a manifest in git",
			step.To, len(past), step.From))
	}
	w.relabels[seen.UID] = append(past, relabelling{step.To, now})
	return nil
}

// recall takes from the status what only the operator knows, for those who look from outside: what was refused. The
// request to try again is the time at which it was made, if `fairlead retry` made it, and the status before it is of no use.
func (o *Observed) recall() {
	status := o.Istio.Status.WorkloadMigration
	if o.run().IsZero() || status.State != v1.WorkloadMigrationStateFailed || status.CompletionTime == nil {
		return
	}
	if asked, err := time.Parse(time.RFC3339Nano, o.retry()); err == nil && asked.After(status.CompletionTime.Time) {
		return
	}
	o.Refused = map[types.UID]Refusal{}
	for _, failure := range status.Failures {
		refusal := Refusal{Reason: passage.Because(v1.ReasonRefused, "%s", failure.Reason), At: failure.Timestamp.Time}
		switch {
		case failure.Kind == kindNamespace:
			o.Refused[o.Fleet.Namespaces[failure.Name].UID] = refusal
		case strings.HasPrefix(failure.Reason, refusedBy):
			if d := deploymentOf(o.Fleet, deployment(failure.Namespace, failure.Name)); d != nil {
				o.Refused[d.UID] = refusal
			}
		}
	}
	if int(status.FailedWorkloads) <= len(status.Failures) || o.Batching().FailFast {
		return
	}
	// There are more than the status has room for, and nothing is left that could still be started.
	for _, d := range o.Fleet.Deployments {
		if _, known := o.Refused[d.UID]; !known {
			o.Refused[d.UID] = Refusal{Reason: passage.Because(v1.ReasonRefused, "the API server refused it; the operator's log says why")}
		}
	}
}
