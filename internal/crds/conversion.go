package crds

import (
	"cmp"
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
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/kube"
)

// ReconcileConversionOptions are the options of ReconcileConversion.
type ReconcileConversionOptions struct {
	// Names of the CRDs.
	Names []string
	// CRDs, if set, replace Fairlead's own.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Every is how often the CRDs are checked, besides whenever the trust bundle changes.
	Every time.Duration
	Log   logr.Logger
}

// ReconcileConversion keeps the conversion of the CRDs pointed to the webhook, and their CA bundle up to date, until the
// context ends. It writes only changes.
func (w *Webhook) ReconcileConversion(ctx context.Context, cfg *rest.Config, opts ReconcileConversionOptions) error {
	wanted, err := selectCRDs(opts.CRDs, opts.Names)
	if err != nil {
		return err
	}
	in, err := newInstaller(cfg, Options{Webhook: w})
	if err != nil {
		return err
	}
	ticker := time.NewTicker(cmp.Or(opts.Every, 10*time.Second))
	defer ticker.Stop()
	elected, logged := w.Elected, map[string]string{}
	take := false
	for {
		failed := false
		for _, want := range wanted {
			err := in.reconcileConversion(ctx, want, take, opts.Log)
			failed = failed || err != nil
			if ctx.Err() != nil {
				return nil
			}
			switch text := fmt.Sprint(err); {
			case err == nil:
				delete(logged, want.Name)
			case isOutdated(errors.Unwrap(err)):
			case logged[want.Name] != text:
				logged[want.Name] = text
				opts.Log.Error(err, "could not update the conversion of a custom resource definition, will be tried again")
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

// reconcileConversion checks the conversion of one CRD once.
func (in *installer) reconcileConversion(ctx context.Context, want *apiextensionsv1.CustomResourceDefinition, take bool, log logr.Logger) error {
	live, err := in.crds.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get CRD %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil || !convertsAllVersions(live, want) {
		return nil
	}
	conversion := in.conversion(ctx, live, want, take)
	if conversion == nil || equality.Semantic.DeepEqual(live.Spec.Conversion, conversion) {
		return nil
	}
	_, err = in.merge(ctx, live, conversionOwner, map[string]any{"spec": map[string]any{"conversion": webhookConversion(conversion)}})
	if err != nil {
		return fmt.Errorf("change the conversion of CRD %s: %w", want.Name, err)
	}
	log.Info("changed the conversion of a custom resource definition", "name", want.Name, "webhook", in.webhook.String())
	return nil
}

// convertsAllVersions tells whether our webhook converts between all versions that a CRD serves. The CRD of a newer Fairlead
// may serve another version.
func convertsAllVersions(live, want *apiextensionsv1.CustomResourceDefinition) bool {
	if version, ours := schemaVersion(live); !ours || version == 0 {
		return false
	}
	return !slices.ContainsFunc(live.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !slices.ContainsFunc(want.Spec.Versions, func(w apiextensionsv1.CustomResourceDefinitionVersion) bool { return w.Name == v.Name })
	})
}

// ConversionURL is the URL of a CRD's conversion webhook, empty if there is no webhook, or a Service.
func ConversionURL(ctx context.Context, cfg *rest.Config, name string) (string, error) {
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

// RemoveConversion has CRDs served without a webhook, in the version in which objects are stored. Without an operator behind the
// webhook, the objects could not be read in any other version, and the CRD could not be deleted if one was stored in another.
func RemoveConversion(ctx context.Context, cfg *rest.Config, names ...string) error {
	in, err := newInstaller(cfg, Options{})
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := retry.RetryOnConflict(kube.ConflictBackoff, func() error { return in.removeConversion(ctx, name) }); err != nil {
			return fmt.Errorf("remove the conversion of CRD %s: %w", name, err)
		}
	}
	return nil
}

func (in *installer) removeConversion(ctx context.Context, name string) error {
	live, err := in.crds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || clientConfigOf(live.Spec.Conversion) == nil {
		return err
	}
	stored := live.DeepCopy()
	serveStoredOnly(stored)
	_, err = in.convert(ctx, live, stored, noConversion())
	return err
}
