// Package lease is the leader election of operators: a lease for each passage, in one place for the whole cluster.
package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

const (
	// Namespace of the leases of passages. It exists in every cluster, hubs included.
	Namespace = "kube-system"
	// FormerName is that of the one lease of older versions, which is in the namespace of the operator.
	FormerName = "fairlead"
	// FormerHolder is the holder of a former lease while operators hold leases of passages: older versions stand by.
	FormerHolder = "fairlead-passages"
	// VersionLabel of the lease of a passage is the version of the operator that holds it.
	VersionLabel = "app.kubernetes.io/version"
)

// A former lease that was not renewed for so long has no operator any more, whatever the clocks say.
const formerAbandoned = time.Hour

// Name of the lease of a passage.
func Name(passage string) string { return "fairlead-" + passage }

// Holder of a lease. Passage is empty for a former lease.
type Holder struct {
	Passage  string
	Lease    string // NAMESPACE/NAME
	Identity string // empty if the lease is free
}

// Options of a Lock.
type Options struct {
	Identity string
	Passages []string
	// Version of this operator, for users who want to know.
	Version string
	// FormerNamespace is where an older version of this operator has its lease.
	FormerNamespace string
	// Observe is called with the holders of the leases of the passages, and of former leases that block, whenever they are known.
	Observe func([]Holder)
	Now     func() time.Time
}

// Lock is held by one operator for each passage: it has the leases of all its passages, or none. It implements
// resourcelock.Interface, of which leader election needs one.
type Lock struct {
	Options
	client coordinationclient.LeasesGetter
	// leases are those of the passages as they were read or written last, nil where there is none.
	leases []*coordinationv1.Lease
	// former is the lease in FormerNamespace, likewise.
	former *coordinationv1.Lease
	// seen are the leases of other operators when they changed last, at since.
	seen  string
	since time.Time
	// held is set from when all leases were acquired, for ever: whoever loses them ends.
	held bool
}

// New is a lock that holds nothing yet.
func New(client coordinationclient.LeasesGetter, options Options) *Lock {
	return &Lock{Options: options, client: client, leases: make([]*coordinationv1.Lease, len(options.Passages))}
}

// Identity is the name of this operator in leases.
func (l *Lock) Identity() string { return l.Options.Identity }

// Describe names the leases.
func (l *Lock) Describe() string {
	var names []string
	for _, passage := range l.Passages {
		names = append(names, Namespace+"/"+Name(passage))
	}
	return strings.Join(names, ", ")
}

// RecordEvent records none, which would need a permission of its own.
func (l *Lock) RecordEvent(string) {}

// Get returns the record of an operator that holds a lease of one of the passages, or a former lease. Its bytes differ whenever any
// of these leases does, so that leader election waits until none of them has been renewed for as long as it lasts.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	own := 0
	var blocking []*coordinationv1.Lease
	for i, passage := range l.Passages {
		lease, err := l.get(ctx, Namespace, Name(passage))
		if err != nil {
			return nil, nil, err
		}
		l.leases[i] = lease
		switch holderOf(lease) {
		case "":
		case l.Options.Identity:
			own++
		default:
			blocking = append(blocking, lease)
		}
	}
	if !l.held {
		valid, err := l.areValid(blocking)
		if err != nil {
			return nil, nil, err
		}
		former, err := l.blockingFormer(ctx, valid)
		if err != nil {
			return nil, nil, err
		}
		blocking = append(blocking, former...)
	}
	l.observe(blocking)
	if len(blocking) == 0 {
		record := &resourcelock.LeaderElectionRecord{}
		if own == len(l.leases) {
			record = resourcelock.LeaseSpecToLeaderElectionRecord(&l.leases[0].Spec)
		}
		raw, err := rawOf(l.leases)
		return record, raw, err
	}
	if !l.held && own > 0 {
		// Others may run those of the passages that are free.
		if err := l.write(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: metav1.NewTime(l.Now())}, func(lease *coordinationv1.Lease) bool {
			return holderOf(lease) == l.Options.Identity
		}); err != nil {
			return nil, nil, err
		}
	}
	raw, err := rawOf(blocking)
	return resourcelock.LeaseSpecToLeaderElectionRecord(&longestOf(blocking).Spec), raw, err
}

// areValid tells whether one of these leases was renewed within its time. Leader election, which looks a moment earlier, does not
// take any of them while this holds.
func (l *Lock) areValid(leases []*coordinationv1.Lease) (bool, error) {
	if len(leases) == 0 {
		return false, nil
	}
	raw, err := rawOf(leases)
	if err != nil {
		return false, err
	}
	if string(raw) != l.seen {
		l.seen, l.since = string(raw), l.Now()
	}
	return l.Now().Before(l.since.Add(time.Duration(ptr.Deref(longestOf(leases).Spec.LeaseDurationSeconds, 0)) * time.Second)), nil
}

func longestOf(leases []*coordinationv1.Lease) *coordinationv1.Lease {
	return slices.MaxFunc(leases, func(a, b *coordinationv1.Lease) int {
		return int(ptr.Deref(a.Spec.LeaseDurationSeconds, 0) - ptr.Deref(b.Spec.LeaseDurationSeconds, 0))
	})
}

// Create is never called: Get finds a record in any case.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update acquires, renews or releases the leases of all passages. The former lease is first: an older version that has just taken it
// is noticed before any other lease is.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		if err := l.holdFormer(ctx, record); err != nil {
			return err
		}
	}
	if err := l.write(ctx, record, func(*coordinationv1.Lease) bool { return true }); err != nil {
		return err
	}
	if record.HolderIdentity == l.Options.Identity {
		l.held = true
	}
	l.observe(nil)
	return nil
}

// Delete deletes the leases of the passages, and the former lease, unless another operator has taken them since.
func (l *Lock) Delete(ctx context.Context) error {
	var errs []error
	for i, lease := range append(slices.Clone(l.leases), l.former) {
		if lease == nil {
			continue
		}
		if err := deleteLease(ctx, l.client, lease); err != nil {
			errs = append(errs, err)
			continue
		}
		if i < len(l.leases) {
			l.leases[i] = nil
		} else {
			l.former = nil
		}
	}
	return errors.Join(errs...)
}

// DeleteFormer deletes the lease that operators keep in a namespace for older versions, which they do not release, unless an older version holds it.
func DeleteFormer(ctx context.Context, client coordinationclient.LeasesGetter, namespace string) error {
	lease, err := client.Leases(namespace).Get(ctx, FormerName, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read lease %s/%s: %w", namespace, FormerName, err)
	}
	if holder := holderOf(lease); holder != "" && holder != FormerHolder {
		return nil
	}
	return deleteLease(ctx, client, lease)
}

// deleteLease deletes a lease unless an operator has taken it since it was read.
func deleteLease(ctx context.Context, client coordinationclient.LeasesGetter, lease *coordinationv1.Lease) error {
	as := &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	err := client.Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: as})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return nil
}

func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, which func(*coordinationv1.Lease) bool) error {
	for i, passage := range l.Passages {
		if !which(l.leases[i]) {
			continue
		}
		written, err := l.put(ctx, Namespace, Name(passage), l.leases[i], record, versionLabels(l.Version))
		if err != nil {
			return err
		}
		l.leases[i] = written
	}
	return nil
}

// versionLabels record a version. A label cannot hold every version, such as "(devel)"; an empty one replaces that of the operator
// that led before.
func versionLabels(version string) map[string]string {
	if len(validation.IsValidLabelValue(version)) > 0 {
		version = ""
	}
	return map[string]string{VersionLabel: version}
}

// put creates a lease, or updates it if nobody has since it was read.
func (l *Lock) put(ctx context.Context, namespace, name string, lease *coordinationv1.Lease, record resourcelock.LeaderElectionRecord, labels map[string]string) (*coordinationv1.Lease, error) {
	record.LeaderTransitions = 0
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
		lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
		return l.client.Leases(namespace).Create(ctx, lease, metav1.CreateOptions{})
	}
	record.LeaderTransitions = int(ptr.Deref(lease.Spec.LeaseTransitions, 0))
	if record.HolderIdentity != "" && record.HolderIdentity != holderOf(lease) {
		record.LeaderTransitions++
	}
	lease = lease.DeepCopy()
	for key, value := range labels {
		metav1.SetMetaDataLabel(&lease.ObjectMeta, key, value)
	}
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	return l.client.Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
}

func (l *Lock) get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	lease, err := l.client.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, err
}

// blockingFormer reads the former lease of this operator, and unless it is known that others lead, that of operators that are started
// by hand. It returns those that an older version holds. Leases of other namespaces count for nothing: tenants write them.
func (l *Lock) blockingFormer(ctx context.Context, blocked bool) ([]*coordinationv1.Lease, error) {
	var err error
	if l.former, err = l.get(ctx, l.FormerNamespace, FormerName); err != nil {
		return nil, err
	}
	all := []*coordinationv1.Lease{l.former}
	if !blocked && !l.isFormer(l.former) && l.FormerNamespace != Namespace {
		byHand, err := l.get(ctx, Namespace, FormerName)
		if err != nil {
			return nil, err
		}
		all = append(all, byHand)
	}
	return slices.DeleteFunc(all, func(lease *coordinationv1.Lease) bool { return !l.isFormer(lease) }), nil
}

// isFormer tells whether an older version holds a lease.
func (l *Lock) isFormer(lease *coordinationv1.Lease) bool {
	holder := holderOf(lease)
	return holder != "" && holder != FormerHolder && lease.Spec.RenewTime != nil && l.Now().Sub(lease.Spec.RenewTime.Time) < formerAbandoned
}

// holdFormer keeps older versions of this operator from leading. All operators that share the lease hold it together, and it is not
// released: it runs out after the last of them.
func (l *Lock) holdFormer(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	third := time.Duration(record.LeaseDurationSeconds) * time.Second / 3
	if l.held {
		if holderOf(l.former) == FormerHolder && record.RenewTime.Sub(l.former.Spec.RenewTime.Time) < third {
			return nil
		}
		former, err := l.get(ctx, l.FormerNamespace, FormerName)
		if err != nil {
			return err
		}
		if l.former = former; l.isFormer(former) {
			return fmt.Errorf("%s, an older version, holds the lease %s/%s", holderOf(former), former.Namespace, former.Name)
		}
	}
	record.HolderIdentity = FormerHolder
	former, err := l.put(ctx, l.FormerNamespace, FormerName, l.former, record, nil)
	if l.held && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
		return nil // Another operator has just renewed it, or the next renewal finds out who has.
	}
	if err != nil {
		return err
	}
	l.former = former
	return nil
}

// observe reports who holds the leases.
func (l *Lock) observe(blocking []*coordinationv1.Lease) {
	if l.Observe == nil {
		return
	}
	var holders []Holder
	for i, passage := range l.Passages {
		holders = append(holders, Holder{Passage: passage, Lease: Namespace + "/" + Name(passage), Identity: holderOf(l.leases[i])})
	}
	for _, lease := range blocking {
		if lease.Name == FormerName {
			holders = append(holders, Holder{Lease: lease.Namespace + "/" + lease.Name, Identity: holderOf(lease)})
		}
	}
	l.Observe(holders)
}

// clockSlack is how much the clock of who asks may differ from that of a leader.
const clockSlack = 30 * time.Second

// IsHeld tells whether an operator leads the passage of a lease: it has not released the lease, and renews it.
func IsHeld(lease *coordinationv1.Lease, now time.Time) bool {
	valid := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	renewed := lease.Spec.RenewTime
	return holderOf(lease) != "" && (renewed == nil || now.Sub(renewed.Time) <= valid+clockSlack)
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// rawOf changes whenever one of the leases does.
func rawOf(leases []*coordinationv1.Lease) ([]byte, error) {
	type state struct {
		Name string
		Spec coordinationv1.LeaseSpec
	}
	var states []state
	for _, lease := range leases {
		if lease != nil {
			states = append(states, state{lease.Namespace + "/" + lease.Name, lease.Spec})
		}
	}
	return json.Marshal(states)
}
