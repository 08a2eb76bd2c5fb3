package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// KeepOptions say how conversion is kept.
type KeepOptions struct {
	// Names of the CRDs.
	Names []string
	// CRDs, if set, are kept instead of Fairlead's own.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Every is how often they are looked at, beside whenever trust changes.
	Every time.Duration
	// Elected, if set, is closed when this process leads: it then takes the conversion over from another that serves,
	// once, so that two that both believe to lead do not take turns.
	Elected <-chan struct{}
	Log     logr.Logger
}

// Keep lets the CRDs' conversion follow the webhook, and whom the API server trusts follow its certificate, until the
// context ends. It writes only what has changed.
func (w *Webhook) Keep(ctx context.Context, cfg *rest.Config, opts KeepOptions) error {
	wanted, err := choose(opts.CRDs, opts.Names)
	if err != nil {
		return err
	}
	if opts.Every == 0 {
		opts.Every = 10 * time.Second
	}
	in, err := newInstaller(cfg, Options{Webhook: w})
	if err != nil {
		return err
	}
	ticker := time.NewTicker(opts.Every)
	defer ticker.Stop()
	elected, told := opts.Elected, map[string]string{}
	take := false
	for {
		failed := false
		for _, want := range wanted {
			err := in.follow(ctx, want, take, opts.Log)
			failed = failed || err != nil
			if ctx.Err() != nil {
				return nil
			}
			switch text := fmt.Sprint(err); {
			case err == nil:
				delete(told, want.Name)
			case changedMeanwhile(errors.Unwrap(err)):
			case told[want.Name] != text:
				told[want.Name] = text
				opts.Log.Error(err, "the conversion of a custom resource definition was not looked after, will be tried again")
			}
		}
		take = take && failed
		select {
		case <-ctx.Done():
			return nil
		case <-w.Trust.Changed():
		case <-elected:
			elected, take = nil, true
		case <-ticker.C:
		}
	}
}

// follow looks at the conversion of one CRD once.
func (in *installer) follow(ctx context.Context, want *apiextensionsv1.CustomResourceDefinition, take bool, log logr.Logger) error {
	live, err := in.crds.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get CRD %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil || !converts(live, want) {
		return nil
	}
	conversion := in.conversion(ctx, live, want, take)
	if conversion == nil || equality.Semantic.DeepEqual(live.Spec.Conversion, conversion) {
		return nil
	}
	_, err = in.merge(ctx, live, conversionOwner, map[string]any{"spec": map[string]any{"conversion": converted(conversion)}})
	if err != nil {
		return fmt.Errorf("change the conversion of CRD %s: %w", want.Name, err)
	}
	log.Info("changed the conversion of a custom resource definition", "name", want.Name, "webhook", in.webhook.String())
	return nil
}

// converts tells whether our webhook converts between all that a CRD serves. A newer Fairlead's CRD may have a version
// that it does not know.
func converts(live, want *apiextensionsv1.CustomResourceDefinition) bool {
	if version, ours := schemaVersion(live); !ours || version == 0 {
		return false
	}
	return !slices.ContainsFunc(live.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !slices.ContainsFunc(want.Spec.Versions, func(w apiextensionsv1.CustomResourceDefinitionVersion) bool { return w.Name == v.Name })
	})
}

// ConvertedAt is the URL at which a CRD's objects are converted by now, or nothing if they are not, or behind a Service.
func ConvertedAt(ctx context.Context, cfg *rest.Config, name string) (string, error) {
	in, err := newInstaller(cfg, Options{})
	if err != nil {
		return "", err
	}
	live, err := in.crds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("get CRD %s: %w", name, err)
	}
	config := clientConfigOf(live.Spec.Conversion)
	if config == nil {
		return "", nil
	}
	return ptr.Deref(config.URL, ""), nil
}
