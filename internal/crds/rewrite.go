package crds

import (
	"context"
	"encoding/json"
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
)

const mergePatch = types.MergePatchType

// rewriteAll goes through all objects of a CRD, page by page.
func (m *migrator) rewriteAll(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, progress *Migration) error {
	resource := m.objects.Resource(schema.GroupVersionResource{
		Group: crd.Spec.Group, Version: progress.To, Resource: crd.Spec.Names.Plural,
	})
	options := metav1.ListOptions{Limit: m.opts.PageSize}
	for {
		page, err := m.page(ctx, resource, options)
		if next, expired := expiredToken(err); expired {
			// What was gone through already costs nothing but time, and the token, if there is one, goes on from here.
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

// page lists objects, patiently: a server that has just learnt of a version is busy with it for a moment.
func (m *migrator) page(ctx context.Context, resource metadata.ResourceInterface, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	var page *metav1.PartialObjectMetadataList
	err := persist(ctx, func() (err error) {
		page, err = resource.List(ctx, options)
		return err
	})
	return page, err
}

// unserved holds for the answer of a server that has yet to learn of a kind, or of a version of it: unlike one about an
// object, it is no more than a page that was not found.
func unserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// expiredToken is where to go on after a list took so long that its state of the cluster is gone; nowhere means from the
// beginning.
func expiredToken(err error) (string, bool) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return "", false
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Continue, true
	}
	return "", true
}

// rewrite stores one object in the version of today. A patch that changes nothing does: the server writes the object
// only if it is not stored in just that way. An object that is gone, or came later, needs nothing. A failure is told and
// counted, and the error is only for the end of the context.
func (m *migrator) rewrite(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, resource metadata.Getter, object *metav1.PartialObjectMetadata, progress *Migration) error {
	if err := m.pace.Wait(ctx); err != nil {
		return err
	}
	var in metadata.ResourceInterface = resource
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		in = resource.Namespace(object.Namespace)
	}
	err := persist(ctx, func() error {
		_, err := in.Patch(ctx, object.Name, mergePatch, []byte("{}"), metav1.PatchOptions{FieldManager: FieldOwner})
		return err
	})
	switch {
	case err == nil, apierrors.IsNotFound(err) && !unserved(err):
		progress.Rewritten++
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		progress.Failed++
		m.opts.Refused(crd.Spec.Names.Kind+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"), err)
	}
	return nil
}

// persist tries again what fails in a way that passes, a few times.
func persist(ctx context.Context, try func() error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6}
	for {
		err := try()
		if err == nil || !passes(err) || backoff.Steps == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff.Step()):
		}
	}
}

func passes(err error) bool {
	return unserved(err) || apierrors.IsConflict(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// forget is the change after which a CRD knows only of the version that it stores.
func forget(crd *apiextensionsv1.CustomResourceDefinition) []byte {
	raw, _ := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   map[string]any{"storedVersions": []string{storageVersion(crd)}},
	})
	return raw
}
