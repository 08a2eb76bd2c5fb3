package installer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

var (
	// records is the kind of Helm's release records.
	records = corev1.SchemeGroupVersion.WithKind("Secret")
	// webhooks is the kind of object that makes a tag.
	webhooks = admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
)

// kinds are what Istio's charts install.
var kinds = []schema.GroupVersionKind{
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	endpoints, endpointSlices,
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	webhooks,
	admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
}

// For a control plane that runs elsewhere, the charts say themselves where its Service leads: older ones in Endpoints,
// newer ones in EndpointSlices.
var (
	endpoints      = corev1.SchemeGroupVersion.WithKind("Endpoints")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
)

// Objects are the objects with the label of the passage, in a cache that besides has only namespaces and pods.
type Objects struct {
	cache cache.Cache
	kinds []schema.GroupVersionKind
	// clusterScoped are those of the kinds that only administrators of the cluster may write.
	clusterScoped []schema.GroupVersionKind
	// revisions is where IstioRevisions are read.
	revisions client.Reader
}

// NewObjects reads from the caches of labelled objects and of IstioRevisions.
func NewObjects(ctx context.Context, labelled cache.Cache, revisions client.Reader, mapper meta.RESTMapper) (*Objects, error) {
	o := &Objects{cache: labelled, revisions: revisions}
	for _, kind := range kinds {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue // an older cluster, where the charts do not install it either
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", kind.Kind, err)
		}
		if _, err := labelled.GetInformer(ctx, metadata(kind), cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("cache %s: %w", kind.Kind, err)
		}
		o.kinds = append(o.kinds, kind)
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			o.clusterScoped = append(o.clusterScoped, kind)
		}
	}
	if _, err := labelled.GetInformer(ctx, metadata(records), cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("cache the records of releases: %w", err)
	}
	if _, err := labelled.GetInformer(ctx, &appsv1.Deployment{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("cache Deployments: %w", err)
	}
	return o, nil
}

func metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// cached tells whether objects of a kind are in the cache at all.
func (o *Objects) cached(kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(o.kinds, func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind.GroupKind() })
}

// get is the metadata of an object, or nil if there is none.
func (o *Objects) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	return kube.GetIfExists(ctx, o.cache, key, metadata(kind))
}

// lastAttempt is when the last attempt at a release began.
func (o *Objects) lastAttempt(ctx context.Context, namespace, name string) (time.Time, error) {
	all, err := o.records(ctx, name, client.InNamespace(namespace))
	var last time.Time
	for i := range all {
		if made := all[i].CreationTimestamp.Time; made.After(last) {
			last = made
		}
	}
	return last, err
}

func (o *Objects) records(ctx context.Context, release string, more ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(records)
	if err := o.cache.List(ctx, list, append(more, client.MatchingLabels{"owner": "helm", "name": release})...); err != nil {
		return nil, fmt.Errorf("list the records of release %s: %w", release, err)
	}
	return list.Items, nil
}

// Deployment of a name, or nil if there is none.
func (o *Objects) Deployment(ctx context.Context, key client.ObjectKey) (*appsv1.Deployment, error) {
	return kube.GetIfExists(ctx, o.cache, key, &appsv1.Deployment{})
}

// DeploymentsOfOwner are the Deployments that were installed in a namespace for an owner.
func (o *Objects) DeploymentsOfOwner(ctx context.Context, namespace string, owner metav1.Object) ([]client.ObjectKey, error) {
	list := &appsv1.DeploymentList{}
	if err := o.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Deployments of %s: %w", owner.GetName(), err)
	}
	var keys []client.ObjectKey
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], owner) {
			keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return keys, nil
}

// ReleasesOfOwner are the releases that the webhooks of an owner are annotated with, with or without a record.
func (o *Objects) ReleasesOfOwner(ctx context.Context, owner metav1.Object) ([]release.State, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(webhooks)
	if err := o.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the webhooks of %s: %w", owner.GetName(), err)
	}
	found := map[release.State]bool{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], owner) {
			of := release.Of(&list.Items[i])
			found[release.State{Name: of.Name, Namespace: of.Namespace, Exists: true}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), byNamespace), nil
}

// NamespaceExists tells whether a namespace exists and is not being deleted.
func (o *Objects) NamespaceExists(ctx context.Context, name string) (bool, error) {
	namespace, err := o.get(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: name})
	return namespace != nil && namespace.DeletionTimestamp.IsZero(), err
}
