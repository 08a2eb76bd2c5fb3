package checks

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/cli/versions"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator/foreign"
)

var now = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// fine is a cluster in which all is well.
func fine() Facts {
	return Facts{
		Kubernetes: "v1.37.1",
		Operators:  []Operator{{Namespace: "fairlead-system", Name: "fairlead", Wanted: 2, Ready: 2, ServiceAccount: "fairlead-system/fairlead", Asked: 50}},
		Leaders:    []versions.Operator{{Leader: "fairlead-0", Passages: []string{"revision", "rollout"}}},
		CRDs:       versions.CRDs{Schemas: []crds.Schema{{Name: "istios.sailoperator.io", State: crds.SchemaSame}}},
		Foreign:    []Foreign{{System: foreign.Of("revision")}},
		Webhook:    &Webhook{CRD: "materializes.materialize.cloud", Ends: now.Add(1000 * time.Hour)},
		Members:    []Object{{Name: "Cluster east"}},
		Unknown:    map[string]string{},
	}
}

func TestJudge(t *testing.T) {
	if lines := Judge(fine(), false, now); slices.ContainsFunc(lines, func(l Line) bool { return l.State != OK || l.Action != "" }) {
		t.Errorf("all is well, and the lines are %+v", lines)
	}
	for name, test := range map[string]struct {
		change func(*Facts)
		check  string
		state  State
		// says is part of the message, and of what to do.
		says, action string
	}{
		"an old Kubernetes":    {func(f *Facts) { f.Kubernetes = "v1.29.4+k3s1" }, "kubernetes", Failed, "v1.29.4", "1.31"},
		"a strange Kubernetes": {func(f *Facts) { f.Kubernetes = "custom" }, "kubernetes", Unknown, "custom", ""},
		"the caller":           {func(f *Facts) { f.Lacking = []string{"list leases"} }, "permissions", Warning, "list leases", "administrator"},
		"CRDs of others":       {func(f *Facts) { f.CRDs.Schemas[0].State = crds.SchemaNotOwned }, "crds", Warning, "istios.sailoperator.io", "docs/moving"},
		"older CRDs":           {func(f *Facts) { f.CRDs.Schemas[0].State = crds.SchemaOlder }, "crds", Warning, "older", "fairlead crds install"},
		"no CRDs":              {func(f *Facts) { f.CRDs.Schemas = nil }, "crds", Failed, "no CRD", "fairlead crds install"},
		"CRDs not read":        {func(f *Facts) { f.CRDs = versions.CRDs{Unknown: "you may not list"} }, "crds", Unknown, "you may not list", ""},
		"another controller": {func(f *Facts) {
			f.Foreign[0].Observed.Deployments = []foreign.Deployment{{Namespace: "a", Name: "b", Replicas: 1}}
		}, "passage revision", Failed, "ForeignController: Sail Operator acts", "--take-over revision"},
		"a passage that no operator runs": {func(f *Facts) { f.Foreign[0].NotRun = true }, "passage revision", OK, "not run by the operator", ""},
		"traces of one":                   {func(f *Facts) { f.Foreign[0].Observed.Objects = traces() }, "passage revision", Failed, "has left traces", "--take-over revision"},
		"traces, to take over":            {func(f *Facts) { f.Foreign[0].Observed.Objects, f.Foreign[0].TakeOver = traces(), true }, "passage revision", OK, "Fairlead takes over", ""},
		"others not read": {func(f *Facts) {
			f.Foreign[0].Observed.Unknown = []foreign.Unknown{{Kind: "Lease", Cause: foreign.Forbidden, Err: "no"}}
		}, "passage revision", Unknown, "Lease: no", ""},
		"a webhook of others": {func(f *Facts) {
			f.Admission = []Admission{{Kind: "ValidatingWebhookConfiguration", Name: "theirs", Resources: []string{"meshes.kuma.io", "pods"}, NotServed: []NotServed{
				{Why: "Service a/b has no ready endpoint", Webhooks: []string{"v", "w", "x", "y", "z"}}, {Why: "Service a/c does not exist", Webhooks: []string{"u"}},
			}}}
		}, "admission", Warning, "theirs has failurePolicy Fail, and is not served: Service a/b has no ready endpoint (v, w, x, and 2 more); Service a/c does not exist (u). Writes of meshes.kuma.io, pods are refused", "kubectl delete validatingwebhookconfiguration theirs"},
		"a webhook of others at a URL": {func(f *Facts) {
			f.Admission = []Admission{{Kind: "ValidatingWebhookConfiguration", Name: "theirs", NotTried: []string{"v"}}}
		}, "admission", Unknown, "theirs has failurePolicy Fail and a URL: whether the API server reaches it is not known, as there is no object to try an update of (v)", ""},
		"webhooks not read": {func(f *Facts) { f.Unknown["admission"] = "you may not list" }, "admission", Unknown, "you may not list", ""},
		"pods not ready":    {func(f *Facts) { f.Operators[0].Ready = 0 }, "operator", Failed, "0 of 2", "kubectl -n fairlead-system"},
		"the operator's role": {func(f *Facts) {
			f.Operators[0].Lacking = []string{"a", "b", "c", "d", "e", "f", "g"}
		}, "operator", Failed, "ServiceAccount fairlead-system/fairlead lacks 7 of 50 permissions: a, b, c, d, e, and 2 more", "upgrade the chart"},
		"the role of another version": {func(f *Facts) {
			f.Operators[0].Lacking, f.Operators[0].OtherVersion = []string{"list leases"}, "0.2.0"
		}, "operator", Warning, "lacks 1 of 50", "use the fairlead of version 0.2.0"},
		"its role is not known": {func(f *Facts) {
			f.Unknown["permissions of the operator"] = "you may not create subjectaccessreviews"
		}, "operator", Unknown, "ServiceAccount fairlead-system/fairlead may do is not known: you may not", ""},
		"no leader": {func(f *Facts) {
			f.Leaders = []versions.Operator{{Absent: true, Unknown: "no operator leads a passage"}}
		}, "leaders", Failed, "no operator leads", "helm install"},
		"leaders not read": {func(f *Facts) { f.Leaders = []versions.Operator{{Unknown: "you may not get"}} }, "leaders", Unknown, "you may not get", ""},
		"a leader's version": {func(f *Facts) {
			f.Leaders = []versions.Operator{{Leader: "a", Passages: []string{"rollout"}, Unknown: "no version"}}
		}, "leaders", OK, "1 passages", ""},
		"the webhook":               {func(f *Facts) { f.Webhook.Err = "connection refused" }, "webhook", Failed, "connection refused", "networkPolicy"},
		"no authority":              {func(f *Facts) { f.Webhook.Ends = time.Time{} }, "webhook", Failed, "trusts no certificate", "start the operator"},
		"an authority that is over": {func(f *Facts) { f.Webhook.Ends = now.Add(-time.Hour) }, "webhook", Failed, "ended at 2027-03-01T11:00:00Z", "renew"},
		"an authority that ends":    {func(f *Facts) { f.Webhook.Ends = now.Add(time.Hour) }, "webhook", Warning, "ends at 2027-03-01T13:00:00Z", "renew"},
		"no webhook":                {func(f *Facts) { f.Webhook = nil }, "webhook", OK, "no CRD has a webhook", ""},
		"charts":                    {func(f *Facts) { f.Charts = []Object{{"IstioRevision default", "ChartsUnavailable: no answer"}} }, "charts", Failed, "IstioRevision default: ChartsUnavailable", "chart source"},
		"a member":                  {func(f *Facts) { f.Members[0].Message = "NotReachable: timeout" }, "members", Failed, "Cluster east: NotReachable", "fairlead clusters"},
		"members not read":          {func(f *Facts) { f.Unknown["members"] = "forbidden" }, "members", Unknown, "forbidden", ""},
		"proxies":                   {func(f *Facts) { f.Meshes = []Object{{"Mesh default", "MTLSNotServed: mTLS"}} }, "proxies", Failed, "MTLSNotServed", "fairlead status mesh"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fine()
			test.change(&f)
			lines := Judge(f, false, now)
			if !slices.ContainsFunc(lines, func(l Line) bool {
				return l.Check == test.check && l.State == test.state && strings.Contains(l.Message, test.says) && strings.Contains(l.Action, test.action)
			}) {
				t.Errorf("no line for %s is %s, says %q and advises %q: %+v", test.check, test.state, test.says, test.action, lines)
			}
			if HasFailed(lines) != (test.state == Failed) {
				t.Errorf("failed: %t", HasFailed(lines))
			}
		})
	}
}

func traces() []foreign.Object {
	return []foreign.Object{{Kind: "Istio", Name: "default", Finalizers: []string{"sailoperator.io/sail-operator"}}}
}

// TestJudgeBefore: before an installation, what Fairlead brings may be missing, and who installs needs permissions.
func TestJudgeBefore(t *testing.T) {
	f := Facts{Kubernetes: "v1.37.1", Lacking: []string{"create clusterroles.rbac.authorization.k8s.io"}, Foreign: []Foreign{{System: foreign.Of("rollout")}}}
	lines := Judge(f, true, now)
	if len(lines) != 5 || lines[1].State != Failed || lines[2].Message != "no CRD of Fairlead is installed yet" || lines[2].State != OK || lines[3].State != OK {
		t.Errorf("the lines are %+v", lines)
	}
}
