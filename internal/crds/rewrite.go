package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"github.com/fairlead/fairlead/internal/kube"
)

// rewriteAll goes through all objects of a CRD, page by page.
func (m *migrator) rewriteAll(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, progress *Migration) error {
	resource := m.objects.Resource(schema.GroupVersionResource{
		Group: crd.Spec.Group, Version: progress.To, Resource: crd.Spec.Names.Plural,
	})
	options := metav1.ListOptions{Limit: m.opts.PageSize}
	for {
		var page *metav1.PartialObjectMetadataList
		err := retryTransient(ctx, func() (err error) {
			page, err = resource.List(ctx, options)
			return err
		})
		if next, expired := expiredToken(err); expired {
			// To list rewritten objects again costs only time; the token, if there is one, continues from here.
			options.Continue = next
			if next == "" {
				progress.Rewritten, progress.Failed = 0, 0
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", crd.Spec.Names.Plural, err)
		}
		for i := range page.Items {
			if err := m.rewrite(ctx, crd, resource, &page.Items[i], progress); err != nil {
				return err
			}
		}
		progress.Remaining = 0
		if page.RemainingItemCount != nil {
			progress.Remaining = *page.RemainingItemCount
		}
		m.opts.Progress(*progress)
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// isNotServed tells whether the API server does not serve a kind or version yet, which it may not for a moment after it has
// learnt of the version: unlike the answer about an object, that is a plain 404.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// expiredToken is where to continue after a list whose snapshot has expired; empty means from the beginning.
func expiredToken(err error) (string, bool) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return "", false
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Continue, true
	}
	return "", true
}

// rewrite stores one object in the current version, by an empty patch: the API server writes the object only if it is stored
// differently. An object that is gone, or was created later, needs nothing. Failures are reported and counted; an error is
// returned only when the context ends.
func (m *migrator) rewrite(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, resource metadata.Getter, object *metav1.PartialObjectMetadata, progress *Migration) error {
	if err := m.pace.Wait(ctx); err != nil {
		return err
	}
	var in metadata.ResourceInterface = resource
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		in = resource.Namespace(object.Namespace)
	}
	err := retryTransient(ctx, func() error {
		_, err := in.Patch(ctx, object.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: FieldOwner})
		return err
	})
	switch {
	case err == nil, apierrors.IsNotFound(err) && !isNotServed(err):
		progress.Rewritten++
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		progress.Failed++
		m.opts.Refused(crd.Spec.Names.Kind+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"), err)
	}
	return nil
}

// retryTransient retries transient errors a few times.
func retryTransient(ctx context.Context, try func() error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7}
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = try()
		return !isTransient(last), nil
	})
	return cmp.Or(last, err)
}

func isTransient(err error) bool {
	return isNotServed(err) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || kube.IsUnavailable(err)
}

// storedVersionsPatch reduces status.storedVersions to the storage version.
func storedVersionsPatch(crd *apiextensionsv1.CustomResourceDefinition) []byte {
	return toJSON(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   map[string]any{"storedVersions": []string{storageVersion(crd)}},
	})
}
