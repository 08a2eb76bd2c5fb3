package generate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Indexes of MeshServices and MeshMultiZoneServices by values that must be unique.
const (
	byVIP      = "meshservice/vip"
	byHostname = "meshservice/hostname"
	// byUnallocated is of those without a VIP or with a hostname collision.
	byUnallocated = "meshservice/unallocated"
)

// addressable is what MeshServices and MeshMultiZoneServices have in common.
type addressable struct {
	conditions *[]metav1.Condition
	addresses  *[]kumav1alpha1.Address
	vips       *[]kumav1alpha1.VIP
	// selector returns the selector of a HostnameGenerator for the kind.
	selector func(*kumav1alpha1.HostnameSelector) *kumav1alpha1.LabelMatch
}

func addressableOf(object client.Object) (addressable, bool) {
	switch s := object.(type) {
	case *kumav1alpha1.MeshService:
		return addressable{&s.Status.Conditions, &s.Status.Addresses, &s.Status.VIPs, func(of *kumav1alpha1.HostnameSelector) *kumav1alpha1.LabelMatch {
			return of.MeshService
		}}, true
	case *kumav1alpha1.MeshMultiZoneService:
		return addressable{&s.Status.Conditions, &s.Status.Addresses, &s.Status.VIPs, func(of *kumav1alpha1.HostnameSelector) *kumav1alpha1.LabelMatch {
			return of.MeshMultiZoneService
		}}, true
	}
	return addressable{}, false
}

func vipIndex(object client.Object) []string {
	a, _ := addressableOf(object)
	var all []string
	for _, vip := range *a.vips {
		all = append(all, vip.IP)
	}
	return all
}

func hostnameIndex(object client.Object) []string {
	a, _ := addressableOf(object)
	var all []string
	for _, address := range *a.addresses {
		all = append(all, desired.MeshOf(object)+"|"+address.Hostname)
	}
	return all
}

func unallocatedIndex(object client.Object) []string {
	a, _ := addressableOf(object)
	for _, condition := range []string{kumav1alpha1.ConditionVIPs, kumav1alpha1.ConditionAddressed} {
		if meta.IsStatusConditionFalse(*a.conditions, condition) {
			return []string{"yes"}
		}
	}
	return nil
}

// allocateVIP keeps the VIP of a service, or allocates one of the range. A duplicate stays with the older service.
func (r *reconciler) allocateVIP(ctx context.Context, object client.Object) error {
	a, _ := addressableOf(object)
	for _, vip := range *a.vips {
		address, err := netip.ParseAddr(vip.IP)
		if err != nil || !r.Ranges.Services.Contains(address) {
			continue
		}
		others, err := r.othersIndexed(ctx, object, byVIP, vip.IP)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(others, func(other client.Object) bool { return desired.IsOlder(other, object) }) {
			r.setVIPs(object, vip.IP)
			return nil
		}
	}
	var errs []error
	address, found := desired.PickAddress(r.Ranges.Services, desired.VIPKey(object), func(address netip.Addr) bool {
		others, err := r.othersIndexed(ctx, object, byVIP, address.String())
		errs = append(errs, err)
		return err == nil && len(others) > 0
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if found {
		r.setVIPs(object, address.String())
		return nil
	}
	*a.vips = nil
	setCondition(object, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, kumav1alpha1.ReasonRangeExhausted,
		fmt.Sprintf("%s has no free address: set a wider --mesh-service-cidr (chart: mesh.serviceCIDR), or delete unused services", r.Ranges.Services))
	return nil
}

func (r *reconciler) setVIPs(object client.Object, addresses ...string) {
	a, _ := addressableOf(object)
	var vips []kumav1alpha1.VIP
	for _, address := range addresses {
		vips = append(vips, kumav1alpha1.VIP{IP: address})
	}
	*a.vips = vips
	if len(vips) == 0 {
		meta.RemoveStatusCondition(a.conditions, kumav1alpha1.ConditionVIPs)
		return
	}
	setCondition(object, kumav1alpha1.ConditionVIPs, metav1.ConditionTrue, kumav1alpha1.ReasonAllocated, "clients dial "+strings.Join(addresses, " or "))
}

// assignHostnames sets the hostnames of all matching HostnameGenerators. A hostname of an older service is left out.
func (r *reconciler) assignHostnames(ctx context.Context, object client.Object) error {
	a, _ := addressableOf(object)
	var generators kumav1alpha1.HostnameGeneratorList
	// Only the mesh owner, who writes in the system namespace, names services.
	if err := r.cache.List(ctx, &generators, client.InNamespace(r.SystemNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	slices.SortFunc(generators.Items, func(x, y kumav1alpha1.HostnameGenerator) int { return strings.Compare(x.Name, y.Name) })
	labels := desired.LabelsOf(object, r.ZoneInfo)
	var addresses []kumav1alpha1.Address
	reason, trouble := "", ""
	for i := range generators.Items {
		generator := &generators.Items[i]
		if selector := a.selector(&generator.Spec.Selector); selector == nil || !selector.Matches(labels) {
			continue
		}
		hostname, err := desired.Hostname(generator, object, r.ZoneInfo)
		if err != nil {
			reason, trouble = kumav1alpha1.ReasonBadTemplate, err.Error()
			continue
		}
		others, err := r.othersIndexed(ctx, object, byHostname, desired.MeshOf(object)+"|"+hostname)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(others, func(other client.Object) bool { return desired.IsOlder(other, object) }); i >= 0 {
			reason = kumav1alpha1.ReasonHostnameCollision
			trouble = fmt.Sprintf("hostname %s belongs to %s, which is older: change the template or the selector of HostnameGenerator %s/%s",
				hostname, objectName(others[i]), generator.Namespace, generator.Name)
			continue
		}
		if !slices.ContainsFunc(addresses, func(a kumav1alpha1.Address) bool { return a.Hostname == hostname }) {
			addresses = append(addresses, kumav1alpha1.Address{
				Hostname: hostname, Origin: kumav1alpha1.OriginHostnameGenerator,
				HostnameGeneratorRef: kumav1alpha1.HostnameGeneratorRef{CoreName: generator.Name + "." + generator.Namespace},
			})
		}
	}
	*a.addresses = addresses
	switch {
	case trouble != "":
		setCondition(object, kumav1alpha1.ConditionAddressed, metav1.ConditionFalse, reason, trouble)
	case len(addresses) > 0:
		setCondition(object, kumav1alpha1.ConditionAddressed, metav1.ConditionTrue, kumav1alpha1.ReasonAddressed, countText(len(addresses), "hostname"))
	default:
		meta.RemoveStatusCondition(a.conditions, kumav1alpha1.ConditionAddressed)
	}
	return nil
}

// setupGenerators adds the controller that reports invalid HostnameGenerators.
func (r *reconciler) setupGenerators(mgr ctrl.Manager) error {
	b := newController(mgr, "hostnames", 1).
		For(&kumav1alpha1.HostnameGenerator{}, builder.WithPredicates(specChanged))
	return complete(b, "HostnameGenerators", r.reconcileGenerator)
}

func (r *reconciler) reconcileGenerator(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var generator kumav1alpha1.HostnameGenerator
	if err := r.cache.Get(ctx, request.NamespacedName, &generator); err != nil {
		r.events.Forget(isAbout(kumav1alpha1.HostnameGeneratorKind, request.NamespacedName))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	reason, text := "", ""
	if generator.Namespace != r.SystemNamespace {
		reason, text = ReasonIgnored, fmt.Sprintf("HostnameGenerator is ignored outside namespace %s: create it in that namespace", r.SystemNamespace)
	} else if err := desired.CheckTemplate(&generator); err != nil {
		reason, text = kumav1alpha1.ReasonBadTemplate, err.Error()
	}
	if r.events.IsNew(subjectOf(kumav1alpha1.HostnameGeneratorKind, &generator), text) {
		r.recorder.Eventf(&generator, nil, corev1.EventTypeWarning, reason, "name", "%s", text)
	}
	return reconcile.Result{}, nil
}
