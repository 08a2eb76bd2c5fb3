package certs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// The label of a managed Secret. A Secret without the label is never written.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedByUs    = "fairlead"
)

// externalSecret is managed by cert-manager or the user.
type externalSecret struct {
	secrets         typedcorev1.SecretInterface
	namespace, name string
}

func (s *externalSecret) String() string { return fmt.Sprintf("Secret %s/%s", s.namespace, s.name) }

func (s *externalSecret) load(ctx context.Context) (*pair, error) {
	found, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return parsePair(found.Data)
}

// managedSecret is managed by Fairlead, with an authority of its own. All replicas manage the Secret; the first one that
// renews the certificate does so for all.
type managedSecret struct {
	externalSecret
	options Options
	// last is the content when last read. A deleted Secret is restored from it, so that the authority stays the same.
	last map[string][]byte
}

// load renews the content if necessary. A conflict is retried: another replica has probably renewed the content.
func (s *managedSecret) load(ctx context.Context) (p *pair, err error) {
	for range 10 {
		p, err = s.attempt(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return p, err
}

func (s *managedSecret) attempt(ctx context.Context) (*pair, error) {
	found, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	switch {
	case gone:
		found = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Type: corev1.SecretTypeTLS, Data: s.last}
	case err != nil:
		return nil, err
	case len(found.Data) > 0 && found.Labels[labelManagedBy] != managedByUs:
		return nil, fmt.Errorf("the Secret is not managed by Fairlead (the label %s: %s is missing) and was not changed: "+
			"name another Secret with --webhook-certificate-secret, or use this one with --webhook-certificate-source=secret",
			labelManagedBy, managedByUs)
	}

	held := readSecretContent(found.Data)
	what, why := decide(held, s.options.Names, s.options.Lifetimes, s.options.Now())
	if what == nothing && !gone {
		s.last = found.Data
		return held.pair, nil
	}
	if what != nothing {
		if found.Data, err = renew(what, held, s.options.Names, s.options.Lifetimes, s.options.Now()); err != nil {
			return nil, err
		}
	}
	metav1.SetMetaDataLabel(&found.ObjectMeta, labelManagedBy, managedByUs)
	// Another write since the Secret was read is a conflict.
	var written *corev1.Secret
	if gone {
		written, err = s.secrets.Create(ctx, found, metav1.CreateOptions{FieldManager: fieldOwner})
	} else {
		written, err = s.secrets.Update(ctx, found, metav1.UpdateOptions{FieldManager: fieldOwner})
	}
	if err != nil {
		return nil, err
	}
	switch {
	case what == nothing:
		s.options.Log.Info("restored the webhook certificate after its Secret was deleted", "secret", s.String())
	case held.authority == nil:
		s.options.Log.Info("issued a webhook certificate", "secret", s.String())
	default:
		s.options.Log.Info("renewed the webhook "+string(what), "secret", s.String(), "why", why)
	}
	s.last = written.Data
	return parsePair(written.Data)
}

const fieldOwner = "fairlead/certs"

// directory has a mounted Secret.
type directory struct{ path string }

func (d directory) String() string { return "directory " + d.path }

// load reads the three files. The files change together, but are read one by one. Files of two versions do not match, are
// rejected, and are read again at the next poll.
func (d directory) load(context.Context) (*pair, error) {
	data := map[string][]byte{}
	for _, key := range []string{keyCertificate, keyPrivate, keyAuthority} {
		text, err := os.ReadFile(filepath.Join(d.path, key))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		data[key] = text
	}
	return parsePair(data)
}
