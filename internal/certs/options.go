package certs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// The kinds of sources say who manages the certificate.
const (
	// SelfSigned: Fairlead, with an authority of its own.
	SelfSigned = "self-signed"
	// Secret: the user.
	Secret = "secret"
	// CertManager: cert-manager.
	CertManager = "cert-manager"
)

// Kinds are all kinds of sources.
var Kinds = []string{SelfSigned, Secret, CertManager}

// Options of a source.
type Options struct {
	// Kind is one of Kinds.
	Kind string
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Directory that the Secret is mounted into, to read instead of the Secret.
	Directory string
	// Names and addresses by which the webhooks are called.
	Names []string
	// AwaitTrust serves a certificate of a new authority only once that is published.
	AwaitTrust bool

	// Poll is how often the source looks for a new certificate.
	Poll time.Duration
	// Settle is how long it takes until every caller trusts a published authority.
	Settle time.Duration
	// Overlap is how long an authority stays published that this replica does not know: another one may serve it.
	Overlap   time.Duration
	Lifetimes Lifetimes
	// Now is the clock.
	Now func() time.Time
	Log logr.Logger
}

func (o Options) withDefaults() Options {
	o.Poll = cmp.Or(o.Poll, 10*time.Second)
	o.Settle = cmp.Or(o.Settle, 5*time.Second)
	// A kubelet takes up to two minutes to update the files of a changed Secret.
	o.Overlap = cmp.Or(o.Overlap, 10*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Lifetimes.Authority = cmp.Or(o.Lifetimes.Authority, 5*365*24*time.Hour)
	o.Lifetimes.Certificate = cmp.Or(o.Lifetimes.Certificate, 90*24*time.Hour)
	return o
}

// Validate refuses options that cannot work.
func (o Options) Validate() error {
	switch {
	case !slices.Contains(Kinds, o.Kind):
		return fmt.Errorf("the source of certificates %q is not one of %s", o.Kind, strings.Join(Kinds, ", "))
	case o.Kind == SelfSigned && o.Directory != "":
		return errors.New("a self-signed certificate is kept in a Secret and not in a directory: " +
			"leave out the directory, or choose another source")
	case o.Directory == "" && o.Name == "":
		return fmt.Errorf("the source of certificates %s needs a Secret or a directory", o.Kind)
	}
	return nil
}

// New returns a source that has not loaded its certificate yet.
func New(config *rest.Config, options Options) (*Source, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	if options.Directory != "" {
		return newSource(directory{options.Directory}, options), nil
	}
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect for the webhook certificate: %w", err)
	}
	secret := externalSecret{client.Secrets(options.Namespace), options.Namespace, options.Name}
	if options.Kind != SelfSigned {
		return newSource(&secret, options), nil
	}
	return newSource(&managedSecret{externalSecret: secret, options: options}, options), nil
}
