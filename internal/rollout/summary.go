package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Standing is where a rollout is, for those who only look on.
type Summary struct {
	// Completed and Requested are the hashes in the status, by today's algorithm.
	Completed, Requested string
	// Promoting holds from the point of no return until the rollout is complete.
	Promoting bool
	// Underway holds when the rollout of the spec, as it is now, has been asked for.
	Underway bool
	// Expired holds when that took too long.
	Expired bool
	// Refused is why the spec, as it is now, cannot be rolled out; nil if it can, or has been.
	Refused error
	// Forced holds when somebody has asked to promote that very rollout, Ignored when forcePromote says so since before.
	Forced, Ignored bool
	// Deadline is when a rollout that is underway will have taken too long. Zero: there is none, or none any more.
	Deadline time.Time
	// Down holds when the active generation has no pod that serves, and no other one does yet.
	Down bool
	// Active is the generation that serves, nil before the first; Next the one that is to.
	Active, Next *Generation
	// NextImage is the image of environmentd in the next generation, or the one that it will have.
	NextImage string
}

// Standing tells where the rollout is.
func (o Observed) Summary(now time.Time) Summary {
	s := Summary{
		Completed: o.completed(), Requested: o.requested(), Promoting: o.promoting(), Underway: o.underway(), Expired: o.expired(now),
		Forced: o.forced(), Ignored: o.forcePromoteIsStale(), Down: o.isDown(),
		Active: o.active(), Next: o.next(), NextImage: o.Materialize.Spec.EnvironmentdImageRef,
	}
	if o.Hash != s.Completed {
		s.Refused = o.validateSpec()
	}
	if s.Promoting || o.matchesSpec(s.Next) {
		s.NextImage = o.imageOf(s.Next)
	}
	if s.Underway && !s.Promoting {
		s.Deadline = o.deadline()
	}
	return s
}

// Proposing is the same environment with another spec: what would be observed if that were the one.
func (o Observed) WithSpec(m *v1alpha2.Materialize) (Observed, error) {
	hash, err := hashAlgorithms.of(m)
	if err != nil {
		return o, fmt.Errorf("hash the spec of Materialize %s/%s: %w", m.Namespace, m.Name, err)
	}
	o.Materialize, o.Hash, o.HashVersion = m, hash, hashAlgorithms.version
	o.Relabelled, o.UnknownHash = nil, nil
	o.relabel(hashAlgorithms)
	if !o.needsLeaderStatus() {
		o.Leader = Answer{}
	}
	return o, nil
}

// Belongings are the kinds of all that belongs to an environment. That of cert-manager may not be installed.
func OwnedKinds() []schema.GroupVersionKind {
	return append(slices.Clone(builtinKinds), kindCertificate)
}

// NewReader finds what belongs to an environment among what a client or a cache has. Of the kinds that it is told not to
// look at, it finds nothing.
func NewReader(reader client.Reader, except ...schema.GroupVersionKind) Reader {
	return labelReader{reader, except}
}

type labelReader struct {
	reader client.Reader
	except []schema.GroupVersionKind
}

func (r labelReader) Owned(ctx context.Context, m *v1alpha2.Materialize) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range OwnedKinds() {
		if slices.Contains(r.except, kind) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.reader.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{v1alpha2.LabelResourceID: m.Status.ResourceID})
		if kind == kindCertificate && (notInstalled(err) || apierrors.IsNotFound(err)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if owner := ownerOf(&list.Items[i]); owner != nil && owner.UID == m.UID {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all, nil
}

func (r labelReader) Live(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object, err := cacheReader{live: r.reader}.Live(ctx, kind, key)
	if kind != kindStatefulSet && apierrors.IsForbidden(err) {
		// What may not be seen of what others have made makes little difference.
		return nil, nil
	}
	return object, err
}
