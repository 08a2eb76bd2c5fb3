package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/kube"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch
// The Leases of another system may be listed and watched by the role of its passage.

const (
	pageSize = 500
	// maxObjects bounds how many objects of a kind are looked at: one trace is enough.
	maxObjects = 100
	// leaseAbandoned is after how long without renewal a lease has no holder any more, whatever the clocks say.
	leaseAbandoned = time.Hour
	// listTimeout is how long the objects of one kind are waited for.
	listTimeout = 30 * time.Second
)

// Observer looks for a system again and again, or once.
type Observer struct {
	System System
	// CRDs of the passage.
	CRDs []string
	// Once holds for an observer that cannot see a lease being renewed. It goes by the clock.
	Once bool
	Now  func() time.Time

	reviews     authorizationclient.SubjectAccessReviewInterface
	deployments appsclient.DeploymentsGetter
	leases      coordinationclient.LeasesGetter
	metadata    metadata.Interface

	apps, coordination rest.Interface
	watches            *watches

	renewals map[string]renewal
	before   Observed
	images   bool
}

// renewal is a lease as it was seen last, and since when it has not changed.
type renewal struct {
	at    time.Time
	since time.Time
}

// NewObserver looks for the system of a passage.
func NewObserver(config *rest.Config, system System, crds []string) (*Observer, error) {
	o := &Observer{System: system, CRDs: crds, Now: time.Now, renewals: map[string]renewal{}}
	apps, err := appsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	coordination, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	o.deployments, o.leases, o.reviews = apps, coordination, authorization.SubjectAccessReviews()
	o.apps, o.coordination = apps.RESTClient(), coordination.RESTClient()
	o.metadata, err = metadata.NewForConfig(config)
	return o, err
}

// Observe looks for everything.
func (o *Observer) Observe(ctx context.Context) (Observed, error) {
	seen, err := o.observeControllers(ctx)
	if err != nil {
		return Observed{}, err
	}
	if err := o.observeObjects(ctx, &seen); err != nil {
		return Observed{}, err
	}
	if err := o.observeCRDs(ctx, &seen); err != nil {
		return Observed{}, err
	}
	o.before = seen
	return seen, nil
}

// ObserveControllers looks for Deployments and leases, and has the rest as it was.
func (o *Observer) ObserveControllers(ctx context.Context) (Observed, error) {
	seen, err := o.observeControllers(ctx)
	seen.Objects, seen.CRDs = o.before.Objects, o.before.CRDs
	for _, u := range o.before.Unknown {
		if !u.IsOfControllers() {
			seen.Unknown = append(seen.Unknown, u)
		}
	}
	return seen, err
}

func (o *Observer) observeControllers(ctx context.Context) (Observed, error) {
	var seen Observed
	if err := o.observeDeployments(ctx, &seen); err != nil {
		return Observed{}, err
	}
	return seen, o.observeLeases(ctx, &seen)
}

func (o *Observer) observeDeployments(ctx context.Context, seen *Observed) error {
	all, err := o.listDeployments(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		seen.Deployments = slices.Clone(o.before.Deployments)
	}
	if err = unknown(seen, kindDeployment, err); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	// Tenants may create any number of Deployments that look like those of the system.
	mayWrite := map[account]bool{}
	for _, d := range all {
		found := Deployment{d.Namespace, d.Name, ptr.Deref(d.Spec.Replicas, 1), d.Status.Replicas + ptr.Deref(d.Status.TerminatingReplicas, 0)}
		known := func(other Deployment) bool { return other.Namespace == d.Namespace && other.Name == d.Name }
		if !o.isOfSystem(d) || slices.ContainsFunc(seen.Deployments, known) {
			continue
		}
		runsAs := accountOf(d)
		if _, asked := mayWrite[runsAs]; !asked {
			if mayWrite[runsAs], err = o.mayWrite(ctx, runsAs); err != nil {
				return fmt.Errorf("ask what Deployment %s/%s may write: %w", d.Namespace, d.Name, err)
			}
		}
		if mayWrite[runsAs] {
			seen.Deployments = append(seen.Deployments, found)
		}
	}
	slices.SortFunc(seen.Deployments, func(a, b Deployment) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return nil
}

func (o *Observer) isOfSystem(d *appsv1.Deployment) bool {
	return slices.Contains(o.System.Deployments, d.Name) || o.System.hasLabel(d.Labels) || slices.ContainsFunc(imagesOf(d), o.System.hasImage)
}

// account is a ServiceAccount.
type account struct{ namespace, name string }

func accountOf(d *appsv1.Deployment) account {
	return account{d.Namespace, cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")}
}

// mayWrite tells whether the pods of an account may write the first kind of the passage, in all namespaces. A Deployment whose pods
// may not, such as that of a tenant under the name of another controller, does nothing to the objects of the passage.
func (o *Observer) mayWrite(ctx context.Context, pods account) (bool, error) {
	kind := o.System.Kinds[0]
	for _, asked := range []authorizationv1.ResourceAttributes{{Verb: "update"}, {Verb: "patch"}, {Verb: "update", Subresource: "status"}, {Verb: "patch", Subresource: "status"}} {
		asked.Group, asked.Version, asked.Resource = kind.Group, kind.Versions[0], kind.Resource
		review, err := o.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + pods.namespace + ":" + pods.name,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + pods.namespace, "system:authenticated"},
			ResourceAttributes: &asked,
		}}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return true, nil // It is not known, and two controllers are worse than none.
		}
		if err != nil || review.Status.Allowed {
			return err == nil, err
		}
	}
	return false, nil
}

// listDeployments looks at all Deployments at first, because a controller may run under any name. After that, one that comes is
// found by its name and labels, and those that were found are found again by their names.
func (o *Observer) listDeployments(ctx context.Context) ([]*appsv1.Deployment, error) {
	if !o.images {
		all, err := o.deploymentsBy(ctx, metav1.ListOptions{})
		o.images = err == nil
		return all, err
	}
	selectors := o.deploymentSelectors()
	var all []*appsv1.Deployment
	if o.watches != nil {
		if watched, synced := inStores[*appsv1.Deployment](o.watches.deployments); synced {
			selectors, all = nil, watched
		}
	}
	for _, d := range o.before.Deployments {
		if !slices.ContainsFunc(all, func(have *appsv1.Deployment) bool { return have.Namespace == d.Namespace && have.Name == d.Name }) {
			selectors = append(selectors, named(d.Name))
		}
	}
	for _, by := range selectors {
		some, err := o.deploymentsBy(ctx, by)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (o *Observer) deploymentsBy(ctx context.Context, options metav1.ListOptions) (all []*appsv1.Deployment, err error) {
	options.Limit = pageSize
	for {
		page, err := o.deployments.Deployments(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if o.isOfSystem(&page.Items[i]) {
				all = append(all, page.Items[i].DeepCopy())
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// deploymentSelectors find the Deployments of the system by their names and labels.
func (o *Observer) deploymentSelectors() []metav1.ListOptions {
	var all []metav1.ListOptions
	for _, name := range o.System.Deployments {
		all = append(all, named(name))
	}
	for _, label := range o.System.Labels {
		selector := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label.Key, Operator: metav1.LabelSelectorOpIn, Values: label.Values}}}
		all = append(all, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&selector)})
	}
	return all
}

func (o *Observer) leaseSelectors() []metav1.ListOptions {
	var all []metav1.ListOptions
	for _, name := range o.System.Leases {
		all = append(all, named(name))
	}
	return all
}

func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
}

func imagesOf(d *appsv1.Deployment) []string {
	var images []string
	for _, container := range d.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	return images
}

func (o *Observer) observeLeases(ctx context.Context, seen *Observed) error {
	all, err := o.listLeases(ctx)
	if err = unknown(seen, kindLease, err); err != nil {
		return fmt.Errorf("list Leases: %w", err)
	}
	for _, lease := range all {
		if !slices.Contains(o.System.Namespaces, lease.Namespace) &&
			!slices.ContainsFunc(seen.Deployments, func(d Deployment) bool { return d.Namespace == lease.Namespace }) {
			continue
		}
		seen.Leases = append(seen.Leases, Lease{lease.Namespace, lease.Name, ptr.Deref(lease.Spec.HolderIdentity, ""), o.isRenewed(lease)})
	}
	return nil
}

func (o *Observer) listLeases(ctx context.Context) ([]*coordinationv1.Lease, error) {
	if o.watches != nil {
		if watched, synced := inStores[*coordinationv1.Lease](o.watches.leases); synced {
			return watched, nil
		}
	}
	var all []*coordinationv1.Lease
	for _, by := range o.leaseSelectors() {
		list, err := o.leases.Leases(metav1.NamespaceAll).List(ctx, by)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

// isRenewed tells whether somebody renews a lease. Until it was seen unchanged for as long as it lasts, somebody may.
func (o *Observer) isRenewed(lease *coordinationv1.Lease) bool {
	now := o.Now()
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil {
		return false
	}
	renewed := lease.Spec.RenewTime.Time
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second
	if o.Once {
		return now.Sub(renewed) < 2*lasts
	}
	key := lease.Namespace + "/" + lease.Name
	if last, known := o.renewals[key]; !known || !last.at.Equal(renewed) {
		o.renewals[key] = renewal{renewed, now}
	}
	return now.Sub(renewed) < leaseAbandoned && now.Sub(o.renewals[key].since) <= lasts
}

func (o *Observer) observeObjects(ctx context.Context, seen *Observed) error {
	for _, kind := range o.System.Kinds {
		list, err := o.listKind(ctx, kind)
		switch {
		case apierrors.IsInternalError(err):
			// The webhook that converts these objects may be that of this very operator.
			seen.Unknown = append(seen.Unknown, Unknown{kind.Kind, Failed, err.Error()})
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			seen.Unknown = append(seen.Unknown, Unknown{kind.Kind, Unavailable, err.Error()})
		default:
			if err := unknown(seen, kind.Kind, err); err != nil {
				return fmt.Errorf("list %s: %w", kind.GroupResource, err)
			}
		}
		if err != nil {
			seen.Objects = append(seen.Objects, o.objectsBefore(kind, err)...)
			continue
		}
		if list == nil {
			continue
		}
		for i := range list.Items {
			if object, found := o.trace(kind, &list.Items[i]); found {
				seen.Objects = append(seen.Objects, object)
			}
		}
	}
	return nil
}

// objectsBefore are those of a kind that were seen last, as far as they may still be there.
func (o *Observer) objectsBefore(kind Kind, err error) []Object {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.before.Objects), func(object Object) bool { return object.Kind != kind.Kind })
}

// listKind is nil for a kind that is not served.
func (o *Observer) listKind(ctx context.Context, kind Kind) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	for _, version := range kind.Versions {
		list, err := o.metadata.Resource(kind.WithVersion(version)).List(ctx, metav1.ListOptions{Limit: maxObjects})
		if err == nil || !apierrors.IsNotFound(err) {
			return list, err
		}
	}
	return nil, nil
}

func (o *Observer) trace(kind Kind, object *metav1.PartialObjectMetadata) (Object, bool) {
	system, own := lastWrites(o.System, writesOf(object, kind.Tenants))
	found := Object{
		Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name, Manager: system.manager, Wrote: system.at,
		Claimed: own.manager != "" && !own.at.Before(system.at),
	}
	for _, name := range object.Finalizers {
		if !kind.Tenants && slices.Contains(o.System.Finalizers, name) {
			found.Finalizers = append(found.Finalizers, name)
		}
	}
	return found, found.Manager != "" || len(found.Finalizers) > 0
}

func writesOf(object metav1.Object, onlyStatus bool) []write {
	var all []write
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && (!onlyStatus || entry.Subresource == "status") {
			all = append(all, write{entry.Manager, entry.Time.Time})
		}
	}
	return all
}

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

func (o *Observer) observeCRDs(ctx context.Context, seen *Observed) error {
	for _, name := range o.CRDs {
		crd, err := o.metadata.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err := unknown(seen, kindCRD, err); err != nil {
			return fmt.Errorf("get CRD %s: %w", name, err)
		}
		if err != nil {
			if !apierrors.IsForbidden(err) {
				seen.CRDs = slices.Clone(o.before.CRDs)
			}
			return nil
		}
		if owner := o.ownerOf(crd); owner != "" {
			seen.CRDs = append(seen.CRDs, CRD{name, owner})
		}
	}
	return nil
}

// ownerOf a CRD is who else keeps it as it is, and empty for one of Fairlead or of nobody who says so.
func (o *Observer) ownerOf(crd *metav1.PartialObjectMetadata) string {
	if _, own := crd.Annotations[crds.SchemaVersionAnnotation]; own {
		return ""
	}
	if release := crd.Annotations["meta.helm.sh/release-name"]; release != "" {
		return fmt.Sprintf("Helm release %s/%s", crd.Annotations["meta.helm.sh/release-namespace"], release)
	}
	for key := range crd.Labels {
		if operator, found := strings.CutPrefix(key, "operators.coreos.com/"); found {
			return "the Operator Lifecycle Manager, for " + operator
		}
	}
	if crd.Labels["olm.managed"] == "true" {
		return "the Operator Lifecycle Manager"
	}
	for _, entry := range crd.ManagedFields {
		if slices.Contains(o.System.Managers, entry.Manager) {
			return entry.Manager
		}
	}
	return ""
}

// unknown notes what the operator may not read, or not now, and returns other errors, but for that of a kind that is not served.
func unknown(seen *Observed, kind string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	switch {
	case apierrors.IsForbidden(err):
		seen.Unknown = append(seen.Unknown, Unknown{kind, Forbidden, err.Error()})
	case kube.IsUnavailable(err) || apierrors.IsTooManyRequests(err):
		seen.Unknown = append(seen.Unknown, Unknown{kind, Unavailable, err.Error()})
	default:
		return err
	}
	return nil
}
