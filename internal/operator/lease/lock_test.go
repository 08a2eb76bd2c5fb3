package lease

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

// store is the leases of a cluster.
type store struct {
	leases  map[string]*coordinationv1.Lease
	version int
	// failing is the lease whose next write fails.
	failing string
}

func (s *store) Leases(namespace string) coordinationclient.LeaseInterface {
	return inNamespace{store: s, namespace: namespace}
}

type inNamespace struct {
	coordinationclient.LeaseInterface
	*store
	namespace string
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (n inNamespace) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if lease := n.leases[n.namespace+"/"+name]; lease != nil {
		return lease.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (n inNamespace) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	delete(n.leases, n.namespace+"/"+name)
	return nil
}

func (n inNamespace) write(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	key := lease.Namespace + "/" + lease.Name
	if n.failing == key {
		n.failing = ""
		return nil, errors.New("refused")
	}
	n.version++
	lease = lease.DeepCopy()
	lease.ResourceVersion = strconv.Itoa(n.version)
	n.leases[key] = lease
	return lease.DeepCopy(), nil
}

func (n inNamespace) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if n.leases[n.namespace+"/"+lease.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource, lease.Name)
	}
	return n.write(lease)
}

func (n inNamespace) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	there := n.leases[n.namespace+"/"+lease.Name]
	if there == nil {
		return nil, apierrors.NewNotFound(resource, lease.Name)
	}
	if there.ResourceVersion != lease.ResourceVersion {
		return nil, apierrors.NewConflict(resource, lease.Name, errors.New("changed"))
	}
	return n.write(lease)
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster with leases that are held: NAMESPACE/NAME=HOLDER.
func cluster(held ...string) *store {
	s := &store{leases: map[string]*coordinationv1.Lease{}}
	for _, one := range held {
		s.hold(one, start)
	}
	return s
}

func (s *store) hold(one string, at time.Time) {
	key, holder, _ := strings.Cut(one, "=")
	namespace, name, _ := strings.Cut(key, "/")
	s.version++
	s.leases[key] = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: strconv.Itoa(s.version)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](12), RenewTime: ptr.To(metav1.NewMicroTime(at))},
	}
}

func (s *store) held() []string {
	var all []string
	for key, lease := range s.leases {
		all = append(all, key+"="+holderOf(lease))
	}
	slices.Sort(all)
	return all
}

// operator that has a lock.
type operator struct {
	*Lock
	now     time.Time
	holders []Holder
}

func newOperator(s *store, identity, namespace string, passages ...string) *operator {
	o := &operator{now: start}
	o.Lock = New(s, Options{
		Identity: identity, Passages: passages, FormerNamespace: namespace, Now: func() time.Time { return o.now },
		Observe: func(holders []Holder) { o.holders = holders },
	})
	return o
}

// try is what leader election does, as long as no lease of another operator has run out.
func (o *operator) try(ctx context.Context) (blockedBy string, err error) {
	record, _, err := o.Get(ctx)
	if err != nil {
		return "", err
	}
	if record.HolderIdentity != "" && record.HolderIdentity != o.Identity() {
		return record.HolderIdentity, nil
	}
	return "", o.acquire(ctx)
}

func (o *operator) acquire(ctx context.Context) error {
	now := metav1.NewTime(start)
	return o.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: o.Identity(), LeaseDurationSeconds: 12, AcquireTime: now, RenewTime: now})
}

// TestLockOfPassages is which operators can lead together, wherever they lease.
func TestLockOfPassages(t *testing.T) {
	const revision, adoption, guard = "kube-system/fairlead-revision=", "kube-system/fairlead-adoption=", "=fairlead-passages"
	cases := map[string]struct {
		held      []string
		namespace string
		passages  []string
		blockedBy string
		holder    Holder
		after     []string
	}{
		"nobody else": {
			namespace: "one", passages: []string{"revision", "adoption"},
			after: []string{adoption + "us", revision + "us", "one/fairlead" + guard},
		},
		"another operator in another namespace, with another passage": {
			held: []string{revision + "them", "two/fairlead" + guard}, namespace: "one", passages: []string{"adoption"},
			after: []string{adoption + "us", revision + "them", "one/fairlead" + guard, "two/fairlead" + guard},
		},
		"another operator in the same namespace, with another passage": {
			held: []string{revision + "them", "one/fairlead" + guard}, namespace: "one", passages: []string{"adoption"},
			after: []string{adoption + "us", revision + "them", "one/fairlead" + guard},
		},
		"another operator in another namespace, with the same passage": {
			held: []string{revision + "them", "two/fairlead" + guard}, namespace: "one", passages: []string{"revision"},
			blockedBy: "them", holder: Holder{"revision", "kube-system/fairlead-revision", "them"},
			after: []string{revision + "them", "two/fairlead" + guard},
		},
		"another operator with one of two passages": {
			held: []string{adoption + "them", "kube-system/fairlead" + guard}, namespace: "one", passages: []string{"revision", "adoption"},
			blockedBy: "them", holder: Holder{"adoption", "kube-system/fairlead-adoption", "them"},
			after: []string{adoption + "them", "kube-system/fairlead" + guard},
		},
		"an operator that has ended": {
			held: []string{revision, "one/fairlead" + guard}, namespace: "one", passages: []string{"revision"},
			after: []string{revision + "us", "one/fairlead" + guard},
		},
		"an older version in the same namespace": {
			held: []string{"one/fairlead=older"}, namespace: "one", passages: []string{"revision"},
			blockedBy: "older", holder: Holder{"", "one/fairlead", "older"}, after: []string{"one/fairlead=older"},
		},
		"an older version that has ended": {
			held: []string{"one/fairlead="}, namespace: "one", passages: []string{"revision"},
			after: []string{revision + "us", "one/fairlead" + guard},
		},
		"an older version that was started by hand": {
			held: []string{"kube-system/fairlead=older"}, namespace: "one", passages: []string{"revision"},
			blockedBy: "older", holder: Holder{"", "kube-system/fairlead", "older"}, after: []string{"kube-system/fairlead=older"},
		},
		"an older version that was started by hand, as this one": {
			held: []string{"kube-system/fairlead=older"}, namespace: "kube-system", passages: []string{"revision"},
			blockedBy: "older", holder: Holder{"", "kube-system/fairlead", "older"}, after: []string{"kube-system/fairlead=older"},
		},
		"a tenant, who may write Leases in a namespace": {
			held: []string{"shop/fairlead=tenant", "shop/fairlead-revision=tenant"}, namespace: "one", passages: []string{"revision"},
			after: []string{"shop/fairlead=tenant", "shop/fairlead-revision=tenant", revision + "us", "one/fairlead" + guard},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := cluster(c.held...)
			o := newOperator(s, "us", c.namespace, c.passages...)
			blockedBy, err := o.try(t.Context())
			if err != nil || blockedBy != c.blockedBy {
				t.Errorf("blocked by %q, want %q: %v", blockedBy, c.blockedBy, err)
			}
			slices.Sort(c.after)
			if diff := cmp.Diff(c.after, s.held()); diff != "" {
				t.Errorf("leases (-want +got):\n%s", diff)
			}
			if c.blockedBy != "" && !slices.Contains(o.holders, c.holder) {
				t.Errorf("observed %+v, not %+v", o.holders, c.holder)
			}
			if c.blockedBy == "" && (o.holders[0].Identity != "us" || len(o.holders) != len(c.passages)) {
				t.Errorf("observed %+v", o.holders)
			}
		})
	}
}

// TestLockChangesWithEveryLease: leader election waits for the end of every lease that is in the way.
func TestLockChangesWithEveryLease(t *testing.T) {
	s := cluster("kube-system/fairlead-revision=dead", "kube-system/fairlead-adoption=alive")
	o := newOperator(s, "us", "one", "revision", "adoption")
	get := func() string {
		t.Helper()
		_, raw, err := o.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	before := get()
	if get() != before {
		t.Error("the record changes with no lease")
	}
	s.hold("kube-system/fairlead-adoption=alive", start.Add(time.Second))
	if get() == before {
		t.Error("a lease was renewed, and the record has not changed")
	}
}

// TestLockTakesOverWhatHasRunOut, an older version's lease included, and only as it was seen.
func TestLockTakesOverWhatHasRunOut(t *testing.T) {
	s := cluster("kube-system/fairlead-revision=dead", "one/fairlead=older")
	o := newOperator(s, "us", "one", "revision")
	if by, err := o.try(t.Context()); by == "" || err != nil {
		t.Fatalf("not blocked: %v", err)
	}
	s.hold("one/fairlead=older", start.Add(time.Second))
	if err := o.acquire(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("took a lease that was renewed meanwhile: %v", err)
	}
	if by, err := o.try(t.Context()); by == "" || err != nil {
		t.Fatalf("not blocked: %v", err)
	}
	if err := o.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kube-system/fairlead-revision=us", "one/fairlead=fairlead-passages"}, s.held()); diff != "" {
		t.Error(diff)
	}
}

// TestLockSeesAnOlderVersionAfterACrash: the lease of a leader that was killed has run out, and an older version has taken over.
func TestLockSeesAnOlderVersionAfterACrash(t *testing.T) {
	s := cluster("kube-system/fairlead-revision=dead", "kube-system/fairlead=older")
	o := newOperator(s, "us", "one", "revision")
	if by, err := o.try(t.Context()); by != "dead" || err != nil {
		t.Fatalf("blocked by %q: %v", by, err)
	}
	o.now = start.Add(12 * time.Second)
	_, before, err := o.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if holder := (Holder{"", "kube-system/fairlead", "older"}); !slices.Contains(o.holders, holder) {
		t.Errorf("observed %+v, not %+v", o.holders, holder)
	}
	s.hold("kube-system/fairlead=older", start.Add(13*time.Second))
	if _, raw, err := o.Get(t.Context()); err != nil || string(raw) == string(before) {
		t.Errorf("the older version has renewed its lease, and the record has not changed: %v", err)
	}
}

func TestLockIgnoresAFormerLeaseOfLongAgo(t *testing.T) {
	s := cluster()
	s.hold("kube-system/fairlead=older", start.Add(-2*time.Hour))
	if by, err := newOperator(s, "us", "one", "revision").try(t.Context()); by != "" || err != nil {
		t.Errorf("blocked by %q: %v", by, err)
	}
}

// TestLockHoldsAllOrNone: one that got only some of its leases gives them back, unless it leads.
func TestLockHoldsAllOrNone(t *testing.T) {
	s := cluster()
	o := newOperator(s, "us", "one", "revision", "adoption")
	s.failing = "kube-system/fairlead-adoption"
	if _, err := o.try(t.Context()); err == nil {
		t.Fatal("the write of a lease did not fail")
	}
	s.hold("kube-system/fairlead-adoption=them", start)
	if by, err := o.try(t.Context()); by != "them" || err != nil {
		t.Fatalf("blocked by %q: %v", by, err)
	}
	if holder := holderOf(s.leases["kube-system/fairlead-revision"]); holder != "" {
		t.Errorf("%q still has the lease of the other passage", holder)
	}

	s = cluster()
	o = newOperator(s, "us", "one", "revision", "adoption")
	if by, err := o.try(t.Context()); by != "" || err != nil {
		t.Fatalf("blocked by %q: %v", by, err)
	}
	s.hold("kube-system/fairlead-adoption=them", start)
	if by, err := o.try(t.Context()); by != "them" || err != nil {
		t.Fatalf("blocked by %q: %v", by, err)
	}
	if holder := holderOf(s.leases["kube-system/fairlead-revision"]); holder != "us" {
		t.Errorf("a leader that still acts gave a lease to %q", holder)
	}
}

// TestLockIsRenewed, also when a lease was deleted or edited, and not when an older version has taken over.
func TestLockIsRenewed(t *testing.T) {
	s := cluster()
	o := newOperator(s, "us", "one", "revision")
	if by, err := o.try(t.Context()); by != "" || err != nil {
		t.Fatalf("blocked by %q: %v", by, err)
	}
	delete(s.leases, "kube-system/fairlead-revision")
	if err := o.acquire(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("renewed a lease that is not there: %v", err)
	}
	if by, err := o.try(t.Context()); by != "" || err != nil {
		t.Errorf("blocked by %q: %v", by, err)
	}
	s.hold("one/fairlead=fairlead-passages", start.Add(time.Second)) // by another operator of this namespace
	if by, err := o.try(t.Context()); by != "" || err != nil {
		t.Errorf("blocked by %q: %v", by, err)
	}
	later := resourcelock.LeaderElectionRecord{HolderIdentity: "us", LeaseDurationSeconds: 12, RenewTime: metav1.NewTime(start.Add(5 * time.Second))}
	s.hold("one/fairlead=older", start)
	if err := o.Update(t.Context(), later); err == nil || !strings.Contains(err.Error(), "older, an older version, holds the lease one/fairlead") {
		t.Errorf("leads beside an older version: %v", err)
	}
}

func TestLockIsReleased(t *testing.T) {
	s := cluster()
	o := newOperator(s, "us", "one", "revision")
	if by, err := o.try(t.Context()); by != "" || err != nil {
		t.Fatalf("blocked by %q: %v", by, err)
	}
	if err := o.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: metav1.NewTime(start)}); err != nil {
		t.Fatal(err)
	}
	next := newOperator(s, "next", "two", "revision")
	if by, err := next.try(t.Context()); by != "" || err != nil {
		t.Errorf("blocked by %q: %v", by, err)
	}
}

// TestVersionOfTheHolder is recorded in the leases of passages, and replaces that of the operator that led before.
func TestVersionOfTheHolder(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "v0.1.0", "v0.1.0-3-g59cf596-dirty": "v0.1.0-3-g59cf596-dirty", "(devel)": "", "": ""} {
		s := cluster("kube-system/fairlead-revision=")
		s.leases["kube-system/fairlead-revision"].Labels = map[string]string{VersionLabel: "v0.0.1", "team": "a"}
		o := newOperator(s, "us", "one", "revision", "adoption")
		o.Version = version
		if blockedBy, err := o.try(t.Context()); blockedBy != "" || err != nil {
			t.Fatalf("%q %v", blockedBy, err)
		}
		for name, labels := range map[string]map[string]string{
			"kube-system/fairlead-revision": {VersionLabel: want, "team": "a"},
			"kube-system/fairlead-adoption": {VersionLabel: want},
			"one/fairlead":                  nil,
		} {
			if diff := cmp.Diff(labels, s.leases[name].Labels); diff != "" {
				t.Errorf("%s, lease %s: %s", version, name, diff)
			}
		}
	}
}

func TestDeleteFormer(t *testing.T) {
	for holder, deleted := range map[string]bool{FormerHolder: true, "": true, "an-older-version": false} {
		const key = "fairlead-system/fairlead"
		s := &store{leases: map[string]*coordinationv1.Lease{key: {
			ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: FormerName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}}}
		// The second time there is none.
		for range 2 {
			if err := DeleteFormer(t.Context(), s, "fairlead-system"); err != nil {
				t.Fatal(err)
			}
		}
		if (s.leases[key] == nil) != deleted {
			t.Errorf("held by %q: %+v", holder, s.leases)
		}
	}
}
