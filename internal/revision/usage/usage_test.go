package usage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestCondition(t *testing.T) {
	five := []string{"Namespace a", "Namespace b", "IstioRevisionTag prod", "Pod a/x", "Pod a/y"}
	cases := map[string]struct {
		usage  Usage
		status metav1.ConditionStatus
		reason v1.Reason
		want   string
	}{
		"nothing": {Usage{}, "False", "NotReferencedByAnything", "nothing refers to this name"},
		"a namespace": {
			Usage{Namespaces: 1, Names: five[:1]}, "True", "ReferencedByWorkloads",
			"1 namespace: Namespace a",
		},
		"a pod": {
			Usage{Pods: 1, Names: five[3:4]}, "True", "ReferencedByWorkloads",
			"1 pod: Pod a/x",
		},
		"a tag": {
			Usage{Tags: 1, Names: five[2:3]}, "True", "ReferencedByTag",
			"1 tag: IstioRevisionTag prod",
		},
		"a workload": {
			Usage{Workloads: 1, Names: []string{"CronJob a/report"}}, "True", "ReferencedByWorkloads",
			"1 workload: CronJob a/report",
		},
		"a tag and workloads": {
			Usage{Tags: 1, Workloads: 2, Names: []string{"IstioRevisionTag prod", "CronJob a/report", "Job a/load"}}, "True", "ReferencedByWorkloads",
			"1 tag and 2 workloads: IstioRevisionTag prod, CronJob a/report, Job a/load",
		},
		"two kinds": {
			Usage{Namespaces: 1, Pods: 2, Names: []string{"Namespace a", "Pod a/x", "Pod a/y"}}, "True", "ReferencedByWorkloads",
			"1 namespace and 2 pods: Namespace a, Pod a/x, Pod a/y",
		},
		"all kinds, as many as are named": {
			Usage{Namespaces: 2, Tags: 1, Pods: 2, Names: five}, "True", "ReferencedByWorkloads",
			"2 namespaces, 1 tag and 2 pods: Namespace a, Namespace b, IstioRevisionTag prod, Pod a/x, Pod a/y",
		},
		"more than are named": {
			Usage{Namespaces: 2, Tags: 1, Pods: 1203, Names: five}, "True", "ReferencedByWorkloads",
			"2 namespaces, 1 tag and 1203 pods: Namespace a, Namespace b, IstioRevisionTag prod, Pod a/x, Pod a/y, and 1201 more",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.usage.Condition()
			if diff := cmp.Diff([]any{c.status, c.reason, c.want}, []any{got.Status, v1.Reason(got.Reason), got.Message}); diff != "" {
				t.Error(diff)
			}
			if c.usage.Used() != (c.status == metav1.ConditionTrue) {
				t.Errorf("used is %t", c.usage.Used())
			}
		})
	}
}

func TestNamesAreTheFirst(t *testing.T) {
	l := newIndex()
	for _, name := range []string{"shop", "bank", "cafe"} {
		l.observeNamespace(makeNamespace(name, "istio.io/rev=r1"))
	}
	for _, name := range []string{"prod", "canary"} {
		l.observeTag(makeTag(name, "IstioRevision/r1", ""))
	}
	for _, namespace := range []string{"zoo", "shop", "attic"} {
		for _, name := range []string{"b", "c", "a"} {
			l.observePod(makePod(namespace, name, "", "r1"))
		}
	}
	want := Usage{Namespaces: 3, Tags: 2, Pods: 9, Names: []string{
		"Namespace bank", "Namespace cafe", "Namespace shop", "IstioRevisionTag canary", "IstioRevisionTag prod",
	}}
	if diff := cmp.Diff(want, l.usage("r1", asRevision)); diff != "" {
		t.Error(diff)
	}

	l.observeNamespace(makeNamespace("cafe", ""))
	l.setTag("prod", tag{})
	want = Usage{Namespaces: 2, Tags: 1, Pods: 9, Names: []string{
		"Namespace bank", "Namespace shop", "IstioRevisionTag canary", "Pod attic/a", "Pod attic/b",
	}}
	if diff := cmp.Diff(want, l.usage("r1", asRevision)); diff != "" {
		t.Error(diff)
	}
}

func TestUnresolved(t *testing.T) {
	tracker := newTracker()
	tracker.index.observeNamespace(makeNamespace("shop", "istio.io/rev=prod"))
	tracker.index.observeNamespace(makeNamespace("bank", "istio-injection=enabled"))
	tracker.index.observeNamespace(makeNamespace("zoo", "istio.io/rev=r1"))
	tracker.index.observeWorkload("Deployment", makeWorkload("Deployment", "cart", "istio.io/rev=canary"))
	tracker.index.observePod(makePod("attic", "old", "", "gone")) // which runs, and whose label names nothing
	tracker.index.observeTag(makeTag("stable", "IstioRevision/never", ""))
	got := tracker.Unresolved(func(name string) bool { return name == "r1" })
	want := []NameUsage{
		{"default", Usage{Namespaces: 1, Names: []string{"Namespace bank"}}},
		{"prod", Usage{Namespaces: 1, Names: []string{"Namespace shop"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
