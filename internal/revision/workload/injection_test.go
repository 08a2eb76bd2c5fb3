package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/injection"
)

// checked is the result of a check.
func checked(way injection.Way, verdict injection.Verdict, answer string) part {
	return func(o *Observed) {
		if o.Injection == nil {
			o.Injection = map[injection.Way]injection.Result{}
		}
		o.Injection[way] = injection.Result{Verdict: verdict, Answer: answer, RetryAt: at(len(o.Injection) + 1)}
	}
}

func TestInjectionGate(t *testing.T) {
	for name, test := range map[string]struct {
		parts []part
		want  string // empty: open
	}{
		"nothing was checked": {nil, ""},
		"all inject":          {[]part{checked(target, injection.Injects, ""), checked("prod", injection.Injects, "")}, ""},
		"a tag does not lead there": {
			[]part{checked(target, injection.Injects, ""), checked("prod", injection.Fails, "got another")},
			"InjectionFailed: IstioRevision default-v1-26-0 does not inject pods with label istio.io/rev=prod: got another; no workload moves",
		},
		"the default does not": {
			[]part{checked(injection.Default, injection.Fails, "no sidecar")},
			"InjectionFailed: IstioRevision default-v1-26-0 does not inject pods with label sidecar.istio.io/inject=true: no sidecar; no workload moves",
		},
		"what could not be checked says how to go on": {
			[]part{checked(target, injection.Unchecked, "exceeded quota")},
			"InjectionNotChecked: cannot check that IstioRevision default-v1-26-0 injects pods with label istio.io/rev=default-v1-26-0: exceeded quota; " +
				"no workload moves until that is checked: let the operator create pods there as dry runs, or move workloads without this check by " +
				"annotation fairlead.dev/skip-injection-check=true on Istio default",
		},
		"a failure comes first": {
			[]part{checked("aaa", injection.Unchecked, "exceeded quota"), checked("prod", injection.Fails, "boom")}, "InjectionFailed: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hold := holdOf(observed(test.parts...))
			if test.want == "" && hold != nil || test.want != "" && (hold == nil || !strings.HasPrefix(hold.String(), test.want)) {
				t.Errorf("got %v, want %s", hold, test.want)
			}
		})
	}
}

// requestOf is what would be checked before anything moves.
func requestOf(o Observed) injection.Request {
	p := newPlanner(o, at(60))
	plan, _, _ := p.plan()
	return p.injectionRequest(plan)
}

func TestInjectionWays(t *testing.T) {
	onOld := runs(old, 2)
	for name, test := range map[string]struct {
		parts []part
		want  []injection.Way
	}{
		"nothing to move":                   {nil, nil},
		"the label of a namespace":          {[]part{namespace("shop", rev(old))}, []injection.Way{target}},
		"a label of the pods":               {[]part{namespace("shop", ""), deploy("shop/cart", onOld, podLabels(rev(old)))}, []injection.Way{target}},
		"pods behind their label":           {[]part{namespace("shop", rev(target)), deploy("shop/cart", onOld)}, []injection.Way{target}},
		"a tag that has moved":              {[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod")), deploy("shop/cart", onOld)}, []injection.Way{"prod"}},
		"a tag that has yet to move":        {[]part{tag("prod", "Istio/default", old), namespace("shop", rev("prod")), deploy("shop/cart", onOld)}, nil},
		"a tag that only pods name":         {[]part{tag("prod", "Istio/default", target), namespace("shop", ""), deploy("shop/cart", onOld, podLabels(rev("prod")))}, []injection.Way{"prod"}},
		"a tag that all have moved through": {[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod"))}, nil},
		"the default": {
			[]part{tag("default", "Istio/default", target), namespace("shop", "istio-injection=enabled"), deploy("shop/cart", onOld)},
			[]injection.Way{injection.Default},
		},
		"the default by its name": {
			[]part{tag("default", "Istio/default", target), namespace("shop", rev("default")), deploy("shop/cart", onOld)},
			[]injection.Way{"default"},
		},
		"the default that has yet to move": {
			[]part{tag("default", "Istio/default", old), namespace("shop", "istio-injection=enabled"), deploy("shop/cart", onOld)}, nil,
		},
		"the revision that was called default": {
			[]part{inPlace, namespace("shop", "istio-injection=enabled"), deploy("shop/cart", runs("default", 2))}, []injection.Way{target},
		},
		"workloads that stay": {
			[]part{tag("prod", "IstioRevision/"+old, old), namespace("shop", rev("prod")), deploy("shop/cart", onOld)}, nil,
		},
		"each once": {
			[]part{
				tag("prod", "Istio/default", target), namespace("bank", rev("prod")), deploy("bank/a", onOld), deploy("bank/b", onOld),
				namespace("shop", rev(old)), deploy("shop/cart", onOld), deploy("shop/till", onOld),
			},
			[]injection.Way{target, "prod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, requestOf(observed(test.parts...)).Ways); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestInjectionNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		parts []part
		want  map[injection.Way][]string
	}{
		"that of the control plane first": {
			[]part{namespace("a", ""), namespace("istio-system", ""), namespace("shop", rev(old))},
			map[injection.Way][]string{target: {"istio-system", "a"}},
		},
		"another one if it is labelled": {
			[]part{namespace("a", ""), namespace("istio-system", "istio-injection=disabled"), namespace("kube-system", ""), namespace("shop", rev(old))},
			map[injection.Way][]string{target: {"a"}},
		},
		"those of a tag last": {
			[]part{tag("prod", "Istio/default", target), namespace("istio-system", ""), namespace("bank", rev("prod")), deploy("bank/a", runs(old, 2))},
			map[injection.Way][]string{"prod": {"istio-system", "bank"}},
		},
		"none": {
			[]part{namespace("shop", rev(old))}, map[injection.Way][]string{target: nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, requestOf(observed(test.parts...)).Namespaces); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReportedInjection(t *testing.T) {
	reported := func(reason v1.Reason, status metav1.ConditionStatus, generation int64) part {
		return with(func(i *v1.Istio) {
			i.Generation = 2
			i.Status.Conditions = []metav1.Condition{{
				Type: string(v1.ConditionWorkloadsMigrated), Status: status, Reason: string(reason), Message: "100% of it", ObservedGeneration: generation,
			}}
		})
	}
	want := &passage.Reason{Code: passage.Code(v1.ReasonInjectionFailed), Message: "100% of it"}
	for name, test := range map[string]struct {
		report part
		want   *passage.Reason
	}{
		"as reported":            {reported(v1.ReasonInjectionFailed, metav1.ConditionFalse, 2), want},
		"for another spec":       {reported(v1.ReasonInjectionFailed, metav1.ConditionFalse, 1), nil},
		"held for another cause": {reported(v1.ReasonTagNotMoved, metav1.ConditionFalse, 2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(test.report).WithReportedInjection()
			if diff := cmp.Diff(test.want, holdOf(o)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if hold := holdOf(o.WithTarget(Target{Name: "default-v1-31-0"})); hold != nil {
				t.Errorf("another target is held: %s", hold)
			}
		})
	}
	if hold := holdOf(observed(reported(v1.ReasonInjectionFailed, metav1.ConditionFalse, 2))); hold != nil {
		t.Errorf("the operator holds for what it reported before: %s", hold)
	}
}
