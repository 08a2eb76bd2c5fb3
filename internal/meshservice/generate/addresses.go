package generate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Indexes of MeshServices and MeshMultiZoneServices by their addresses.
const (
	byVIP      = "meshservice/vip"
	byHostname = "meshservice/hostname"
	// byAllocated is of those with a VIP of the range, which the share of their namespace counts.
	byAllocated = "meshservice/allocated"
	// byWaiting is of those without a VIP or with a hostname collision, by what they wait for.
	byWaiting = "meshservice/waiting"
)

// addressable is a MeshService or MeshMultiZoneService.
type addressable interface {
	client.Object
	ServiceStatus() *kumav1alpha1.ServiceStatus
}

// addressIndexes are the indexes of MeshServices and MeshMultiZoneServices by their addresses.
func (r *reconciler) addressIndexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{byVIP: vipIndex, byHostname: hostnameIndex, byAllocated: r.allocatedIndex, byWaiting: waitingIndex}
}

func vipIndex(object client.Object) []string {
	var all []string
	for _, vip := range object.(addressable).ServiceStatus().VIPs {
		all = append(all, vip.IP)
	}
	return all
}

func hostnameIndex(object client.Object) []string {
	var all []string
	for _, address := range object.(addressable).ServiceStatus().Addresses {
		all = append(all, desired.MeshOf(object)+"|"+address.Hostname)
	}
	return all
}

// allocated is the only value of byAllocated.
const allocated = "yes"

func (r *reconciler) allocatedIndex(object client.Object) []string {
	if len(r.allocatedVIPs(object)) > 0 {
		return []string{allocated}
	}
	return nil
}

// Values of byWaiting.
const waitsForRange = "range"

func waitsForShare(namespace string) string { return "share|" + namespace }

func waitsForHostname(mesh string) string { return "hostname|" + mesh }

// waitingIndex returns what a service waits for. One that is being deleted waits for nothing.
func waitingIndex(object client.Object) []string {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	conditions := object.(addressable).ServiceStatus().Conditions
	var all []string
	if c := meta.FindStatusCondition(conditions, kumav1alpha1.ConditionVIPs); c != nil && c.Status == metav1.ConditionFalse {
		if c.Reason == kumav1alpha1.ReasonShareExhausted {
			all = append(all, waitsForShare(object.GetNamespace()))
		} else {
			all = append(all, waitsForRange)
		}
	}
	if meta.IsStatusConditionFalse(conditions, kumav1alpha1.ConditionAddressed) {
		all = append(all, waitsForHostname(desired.MeshOf(object)))
	}
	return all
}

// allocateVIP keeps the VIP of a service, or allocates one of the range. A duplicate stays with the service that has precedence.
func (r *reconciler) allocateVIP(ctx context.Context, object addressable) error {
	for _, vip := range object.ServiceStatus().VIPs {
		address, err := netip.ParseAddr(vip.IP)
		if err != nil || !r.Ranges.Services.Contains(address) {
			continue
		}
		others, err := othersIndexed(ctx, r.client, object, byVIP, vip.IP)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(others, func(other client.Object) bool { return desired.HasPrecedence(other, object, r.ZoneInfo) }) {
			setVIPs(object, vip.IP)
			return nil
		}
	}
	if full, err := r.hasShare(ctx, object); err != nil || full {
		return err
	}
	var errs []error
	address, found := desired.PickAddress(r.Ranges.Services, desired.VIPKey(object), func(address netip.Addr) bool {
		others, err := othersIndexed(ctx, r.client, object, byVIP, address.String())
		errs = append(errs, err)
		return err == nil && len(others) > 0
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if found {
		setVIPs(object, address.String())
		return nil
	}
	object.ServiceStatus().VIPs = nil
	setCondition(object, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, kumav1alpha1.ReasonRangeExhausted,
		fmt.Sprintf("%s has no free address: set a wider --mesh-service-cidr (chart: mesh.serviceCIDR), or delete unused services", r.Ranges.Services))
	return nil
}

// hasShare says whether the namespace of a service has all VIPs that it may have, and then reports it on the service.
func (r *reconciler) hasShare(ctx context.Context, object addressable) (bool, error) {
	share := r.share(r.Ranges.Services)
	if share == 0 || desired.IsTrusted(object, r.ZoneInfo) {
		return false, nil
	}
	others, err := othersIndexed(ctx, r.client, object, byAllocated, allocated, client.InNamespace(object.GetNamespace()))
	if err != nil || len(others) < share {
		return false, err
	}
	object.ServiceStatus().VIPs = nil
	setCondition(object, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, kumav1alpha1.ReasonShareExhausted,
		fmt.Sprintf("a namespace may have %d VIPs, and namespace %s has them: set a higher --mesh-namespace-vips (chart: mesh.namespaceVIPs), or delete unused services",
			share, object.GetNamespace()))
	return true, nil
}

// allocatedVIPs returns the VIPs of a service that are of the range.
func (r *reconciler) allocatedVIPs(object client.Object) []string {
	return slices.DeleteFunc(vipIndex(object), func(vip string) bool {
		address, err := netip.ParseAddr(vip)
		return err != nil || !r.Ranges.Services.Contains(address)
	})
}

func setVIPs(object addressable, addresses ...string) {
	status := object.ServiceStatus()
	status.VIPs = nil
	for _, address := range addresses {
		status.VIPs = append(status.VIPs, kumav1alpha1.VIP{IP: address})
	}
	if len(addresses) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, kumav1alpha1.ConditionVIPs)
		return
	}
	setCondition(object, kumav1alpha1.ConditionVIPs, metav1.ConditionTrue, kumav1alpha1.ReasonAllocated, "clients dial "+strings.Join(addresses, " or "))
}

// assignHostnames sets the hostnames of all matching HostnameGenerators. A hostname of a service with precedence is left out.
func (r *reconciler) assignHostnames(ctx context.Context, object addressable) error {
	var generators kumav1alpha1.HostnameGeneratorList
	if err := r.cache.List(ctx, &generators, client.InNamespace(r.SystemNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	rules, err := r.rulesOf(ctx, object.GetNamespace())
	if err != nil {
		return err
	}
	var errs []error
	has := object.ServiceStatus().Addresses
	addresses, reason, problem := desired.Addresses(object, has, pointersTo(generators.Items), rules, r.ZoneInfo, func(hostname string) string {
		others, err := othersIndexed(ctx, r.client, object, byHostname, desired.MeshOf(object)+"|"+hostname)
		errs = append(errs, err)
		if i := slices.IndexFunc(others, func(other client.Object) bool { return desired.HasPrecedence(other, object, r.ZoneInfo) }); i >= 0 {
			return objectName(others[i])
		}
		return ""
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	object.ServiceStatus().Addresses = addresses
	switch {
	case problem != "":
		setCondition(object, kumav1alpha1.ConditionAddressed, metav1.ConditionFalse, reason, problem)
	case len(addresses) > 0:
		setCondition(object, kumav1alpha1.ConditionAddressed, metav1.ConditionTrue, kumav1alpha1.ReasonAddressed, countText(len(addresses), "hostname"))
	default:
		meta.RemoveStatusCondition(&object.ServiceStatus().Conditions, kumav1alpha1.ConditionAddressed)
	}
	return nil
}

// setupGenerators adds the controller that reports invalid HostnameGenerators.
func (r *reconciler) setupGenerators(mgr ctrl.Manager) error {
	b := newController(mgr, "hostnames", 1).
		For(&kumav1alpha1.HostnameGenerator{}, builder.WithPredicates(specChanged))
	return r.complete(b, "HostnameGenerators", r.reconcileGenerator)
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
	r.warnOnce(&generator, reason, "name", text)
	return reconcile.Result{}, nil
}
