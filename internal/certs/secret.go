package certs

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// The mark of a Secret that Fairlead keeps itself. One without it is somebody else's and is never written.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedByUs    = "fairlead"
)

// theirSecret is one that cert-manager or the user keeps.
type theirSecret struct {
	secrets         typedcorev1.SecretInterface
	namespace, name string
}

func (s *theirSecret) String() string { return fmt.Sprintf("Secret %s/%s", s.namespace, s.name) }

func (s *theirSecret) load(ctx context.Context) (*pair, error) {
	found, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return parsePair(found.Data)
}

// ourSecret is one that Fairlead keeps itself, with an authority of its own. All replicas keep it, and whichever is first
// to renew what it holds is followed by the others.
type ourSecret struct {
	secrets         typedcorev1.SecretInterface
	namespace, name string
	names           []string
	lifetimes       Lifetimes
	now             func() time.Time
	log             logr.Logger
	// last is what it held when last seen, to be put back when somebody deletes it: those who trust the authority in it
	// need not hear of another one.
	last map[string][]byte
}

func (s *ourSecret) String() string { return fmt.Sprintf("Secret %s/%s", s.namespace, s.name) }

// load renews what needs to be. It starts over when somebody else has written meanwhile, which means that there is
// probably nothing left to do.
func (s *ourSecret) load(ctx context.Context) (p *pair, err error) {
	for range 10 {
		p, err = s.attempt(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return p, err
}

func (s *ourSecret) attempt(ctx context.Context) (*pair, error) {
	found, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	switch {
	case gone:
		found = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Type: corev1.SecretTypeTLS, Data: s.last}
	case err != nil:
		return nil, err
	case len(found.Data) > 0 && found.Labels[labelManagedBy] != managedByUs:
		return nil, fmt.Errorf("it is somebody else's (it lacks the label %s: %s) and was left as it is: "+
			"name another one with --webhook-certificate-secret, or use it as it is with --webhook-certificate-source=secret",
			labelManagedBy, managedByUs)
	}

	held := readHolding(found.Data)
	what, why := decide(held, s.names, s.lifetimes, s.now())
	if what == nothing && !gone {
		s.last = found.Data
		return held.pair, nil
	}
	if what != nothing {
		if found.Data, err = renew(what, held, s.names, s.lifetimes, s.now()); err != nil {
			return nil, err
		}
	}
	written, err := s.write(ctx, found, gone)
	if err != nil {
		return nil, err
	}
	switch {
	case what == nothing:
		s.log.Info("put back the webhook certificate, which was deleted", "secret", s.String())
	case held.authority == nil:
		s.log.Info("made a webhook certificate", "secret", s.String())
	default:
		s.log.Info("renewed the webhook "+string(what), "secret", s.String(), "why", why)
	}
	s.last = written.Data
	return parsePair(written.Data)
}

// write makes or replaces the Secret; what was read is what it replaces, or it conflicts.
func (s *ourSecret) write(ctx context.Context, secret *corev1.Secret, gone bool) (*corev1.Secret, error) {
	secret = secret.DeepCopy()
	secret.Labels = maps.Clone(secret.Labels)
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[labelManagedBy] = managedByUs
	if gone {
		return s.secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldOwner})
	}
	return s.secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldOwner})
}

const fieldOwner = "fairlead/certs"
