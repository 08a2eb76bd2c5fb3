// Package uninstall releases everything that would wait for an operator, or be deleted with Fairlead's CRDs.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/operator/lease"
)

// pageSize is how many objects are listed at once.
const pageSize = 500

// Observe reads what there is of Fairlead in a cluster, and what depends on it. Of objects it reads only the metadata.
func Observe(ctx context.Context, config *rest.Config, c client.Client) (Observed, error) {
	var o Observed
	var err error
	if o.CRDs, err = observeCRDs(ctx, c); err != nil {
		return o, err
	}
	owners := map[types.UID]bool{}
	for _, crd := range o.CRDs {
		err := forEach(ctx, c, crd.Kind, func(object *metav1.PartialObjectMetadata) {
			found := Object{Ref: refOf(crd.Kind, object), UID: object.UID, Finalizers: object.Finalizers}
			if !crd.Foreign || found.hasOwnFinalizer() {
				owners[object.UID] = true
			}
			o.Objects = append(o.Objects, found)
		})
		if err != nil {
			return o, err
		}
	}
	if o.Deployments, err = observeDeployments(ctx, c); err != nil {
		return o, err
	}
	if o.FormerLeases, err = observeFormerLeases(ctx, c); err != nil {
		return o, err
	}
	if len(owners) == 0 {
		return o, nil
	}
	return o, observeDependents(ctx, config, c, owners, &o)
}

// observeCRDs finds those that are in the cluster.
func observeCRDs(ctx context.Context, c client.Client) ([]CRD, error) {
	var found []CRD
	for _, passage := range operator.Passages() {
		for _, name := range passage.CRDs {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
			if err := c.Get(ctx, client.ObjectKey{Name: name}, live); apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("get CRD %s: %w", name, err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, crd); err != nil {
				return nil, fmt.Errorf("read CRD %s: %w", name, err)
			}
			found = append(found, crdOf(passage.Name, crd))
		}
	}
	return found, nil
}

func crdOf(passage string, live *apiextensionsv1.CustomResourceDefinition) CRD {
	crd := CRD{Name: live.Name, Passage: passage, Foreign: live.Annotations[crds.SchemaVersionAnnotation] == ""}
	for _, version := range live.Spec.Versions {
		if version.Storage {
			crd.Kind = schema.GroupVersionKind{Group: live.Spec.Group, Version: version.Name, Kind: live.Spec.Names.Kind}
		}
	}
	conversion := live.Spec.Conversion
	crd.Converted = conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter
	for _, version := range live.Status.StoredVersions {
		if version != crd.Kind.Version {
			crd.Stored = append(crd.Stored, version)
		}
	}
	return crd
}

// observeDeployments finds those of the chart.
func observeDeployments(ctx context.Context, c client.Client) ([]Deployment, error) {
	var found []Deployment
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("DeploymentList"))
	if err := c.List(ctx, list, client.HasLabels{"helm.sh/chart"}); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range list.Items {
		if !strings.HasPrefix(d.GetLabels()["helm.sh/chart"], "fairlead-") {
			continue
		}
		replicas, set, err := unstructured.NestedInt64(d.Object, "spec", "replicas")
		if err != nil {
			return nil, fmt.Errorf("read Deployment %s/%s: %w", d.GetNamespace(), d.GetName(), err)
		}
		if !set {
			replicas = 1
		}
		found = append(found, Deployment{Ref{kind, d.GetNamespace(), d.GetName()}, int32(replicas)})
	}
	return found, nil
}

// observeFormerLeases finds the namespaces with a lease that operators hold for older versions: the Deployments that tell these
// namespaces, too, are gone after `helm uninstall`.
func observeFormerLeases(ctx context.Context, c client.Client) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("LeaseList"))
	if err := c.List(ctx, list, client.MatchingFields{"metadata.name": lease.FormerName}); err != nil {
		return nil, fmt.Errorf("list Leases: %w", err)
	}
	var namespaces []string
	for _, item := range list.Items {
		if holder, _, err := unstructured.NestedString(item.Object, "spec", "holderIdentity"); err == nil && holder == lease.FormerHolder {
			namespaces = append(namespaces, item.GetNamespace())
		}
	}
	return namespaces, nil
}

// observeDependents looks for owner references in all kinds of the cluster, whoever has set them.
func observeDependents(ctx context.Context, config *rest.Config, c client.Client, owners map[types.UID]bool, o *Observed) error {
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	lists, err := discover.ServerPreferredResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &failed) {
		for group := range failed.Groups {
			o.Unreadable = append(o.Unreadable, group.String())
		}
		slices.Sort(o.Unreadable)
	} else if err != nil {
		return fmt.Errorf("find all kinds: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			kind := version.WithKind(resource.Kind)
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "patch") || isOwn(o.CRDs, kind) || resource.Kind == "Event" {
				continue
			}
			err := forEach(ctx, c, kind, func(object *metav1.PartialObjectMetadata) {
				d := Dependent{Ref: refOf(kind, object), UID: object.UID}
				for _, owner := range object.OwnerReferences {
					if owners[owner.UID] {
						d.Owners = append(d.Owners, owner.UID)
					}
				}
				if len(d.Owners) > 0 {
					o.Dependents = append(o.Dependents, d)
				}
			})
			if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func isOwn(all []CRD, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(all, func(crd CRD) bool { return crd.Kind.GroupKind() == kind.GroupKind() })
}

func forEach(ctx context.Context, c client.Client, kind schema.GroupVersionKind, visit func(*metav1.PartialObjectMetadata)) error {
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("list %s: %w", kind.GroupKind(), err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

func refOf(kind schema.GroupVersionKind, object client.Object) Ref {
	return Ref{kind, object.GetNamespace(), object.GetName()}
}

func metadataOf(ref Ref) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	object.SetGroupVersionKind(ref.Kind)
	return object
}
