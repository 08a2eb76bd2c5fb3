// Package checks is what `fairlead check` looks at, and what it says about each fact.
package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/fairlead/fairlead/internal/cli/versions"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator/foreign"
)

// State of a line.
type State string

const (
	OK      State = "ok"
	Warning State = "warning"
	Failed  State = "failed"
	// Unknown is what could not be read.
	Unknown State = "unknown"
)

// Line is one thing that was looked at.
type Line struct {
	Check   string `json:"check"`
	State   State  `json:"state"`
	Message string `json:"message"`
	// Action is what to do, empty if nothing is.
	Action string `json:"action,omitempty"`
}

// Facts are what was observed.
type Facts struct {
	Kubernetes string
	// Lacking are what the caller may not do, for an installation or for this command.
	Lacking []string
	// Operators are the Deployments of Fairlead.
	Operators []Operator
	Leaders   []versions.Operator
	CRDs      versions.CRDs
	Foreign   []Foreign
	Admission []Admission
	// Webhook is nil if no CRD names one.
	Webhook *Webhook
	// Charts are revisions whose charts could not be loaded, with the reason.
	Charts  []Object
	Members []Object
	Meshes  []Object
	// Unknown are what could not be read, by check.
	Unknown map[string]string
}

// Operator is a Deployment of Fairlead.
type Operator struct {
	Namespace, Name string
	Wanted, Ready   int32
	ChartSource     string
	// Passages that it runs, and those that it takes over from others.
	Passages, TakesOver []string
	// OtherVersion is that of the chart, if it is not the one of this fairlead.
	OtherVersion string
	// ServiceAccount with its namespace, and what it may not do of the permissions asked for.
	ServiceAccount string
	Lacking        []string
	Asked          int
}

// Foreign is another system as it was observed.
type Foreign struct {
	System   foreign.System
	Observed foreign.Observed
	// TakeOver holds if the operator was asked to take over from it.
	TakeOver bool
	// NotRun holds if no operator runs the passage; then nothing was observed.
	NotRun bool
}

// Webhook that converts objects.
type Webhook struct {
	CRD string
	// Ends is when the last certificate of those that the API server trusts ends.
	Ends time.Time
	// Err is why the API server could not call it.
	Err string
}

// Object with a condition. Message is empty if all is well.
type Object struct{ Name, Message string }

const oldestKubernetes = "1.31"

// expiresSoon is before how long the end of a certificate is worth a warning.
const expiresSoon = 48 * time.Hour

// Judge says of each fact whether it is as it should be. Before an installation there is nothing of Fairlead to look at.
func Judge(f Facts, pre bool, now time.Time) []Line {
	lines := []Line{judgeKubernetes(f.Kubernetes), judgeCaller(f, pre)}
	lines = append(lines, judgeCRDs(f, pre)...)
	for _, other := range f.Foreign {
		lines = append(lines, judgeForeign(other, now))
	}
	lines = append(lines, judgeAdmission(f)...)
	if pre {
		return lines
	}
	lines = append(lines, judgeOperators(f)...)
	lines = append(lines, judgeWebhook(f, now))
	lines = append(lines, judgeObjects(f, "charts", f.Charts, "no IstioRevision waits for charts",
		"check the chart source of the operator, and its network: see docs/revisions/troubleshooting.md")...)
	lines = append(lines, judgeObjects(f, "members", f.Members, fmt.Sprintf("%d clusters have joined, and can be reached", len(f.Members)),
		"see `fairlead clusters`, and docs/adoption/troubleshooting.md")...)
	return append(lines, judgeObjects(f, "proxies", f.Meshes, fmt.Sprintf("%d meshes, none reports that its proxies are not served", len(f.Meshes)),
		"see `fairlead status mesh NAME`, and docs/meshservice/troubleshooting.md")...)
}

// HasFailed tells whether any line has.
func HasFailed(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.State == Failed })
}

func judgeKubernetes(version string) Line {
	line := Line{Check: "kubernetes", State: OK, Message: "Kubernetes " + version}
	have, err := semver.NewVersion(version)
	if err != nil {
		line.State, line.Message = Unknown, fmt.Sprintf("the API server says its version is %q", version)
		return line
	}
	if have.LessThan(semver.MustParse(oldestKubernetes)) {
		line.State, line.Action = Failed, "upgrade to Kubernetes "+oldestKubernetes+" or newer"
	}
	return line
}

func judgeCaller(f Facts, pre bool) Line {
	line := Line{Check: "permissions", State: OK, Message: "you may do what this command needs"}
	if pre {
		line.Message = "you may install the chart"
	}
	if len(f.Lacking) == 0 {
		return line
	}
	line.State, line.Message = Failed, "you may not "+strings.Join(f.Lacking, ", ")
	line.Action = "ask an administrator of the cluster for these permissions"
	if !pre {
		line.State = Warning
	}
	return line
}

func judgeCRDs(f Facts, pre bool) []Line {
	if f.CRDs.Unknown != "" {
		return []Line{{Check: "crds", State: Unknown, Message: f.CRDs.Unknown}}
	}
	var lines []Line
	installed := 0
	by := map[crds.SchemaState][]string{}
	for _, schema := range f.CRDs.Schemas {
		by[schema.State] = append(by[schema.State], schema.Name)
		if schema.State != crds.SchemaNotInstalled {
			installed++
		}
	}
	add := func(state State, names []string, what, action string) {
		if len(names) > 0 {
			lines = append(lines, Line{Check: "crds", State: state, Message: fmt.Sprintf("%s %s", strings.Join(names, ", "), what), Action: action})
		}
	}
	add(Warning, by[crds.SchemaNotOwned], "not installed by Fairlead",
		"leave them to their owner, or take them over: see docs/moving/README.md")
	add(Warning, by[crds.SchemaOlder], "older than this fairlead",
		"the operator upgrades them when it starts; with --install-crds=false, run `fairlead crds install`")
	add(Warning, by[crds.SchemaNewer], "newer than this fairlead", "use the fairlead of the version that installed them")
	if len(lines) > 0 {
		return lines
	}
	if installed == 0 && !pre {
		return []Line{{Check: "crds", State: Failed, Message: "no CRD of Fairlead is installed", Action: "start the operator, or run `fairlead crds install`"}}
	}
	if installed == 0 {
		return []Line{{Check: "crds", State: OK, Message: "no CRD of Fairlead is installed yet"}}
	}
	return []Line{{Check: "crds", State: OK, Message: fmt.Sprintf("%d CRDs of Fairlead, all of this version", installed)}}
}

func judgeForeign(other Foreign, now time.Time) Line {
	line := Line{Check: "passage " + other.System.Passage, State: OK, Message: fmt.Sprintf("no %s acts on its kinds", other.System.Name)}
	if other.NotRun {
		line.Message = "not run by the operator (--passages)"
		return line
	}
	decision := foreign.Decide(other.System, other.Observed, other.TakeOver, now)
	switch {
	case decision.Hold:
		line.State, line.Message, line.Action = Failed, "ForeignController: "+decision.Message(other.System), decision.Action
	case len(other.Observed.Unknown) > 0:
		line.State, line.Message = Unknown, other.Observed.Unknown[0].String()
	case len(decision.Seen) > 0:
		line.Message = decision.Message(other.System) + "; Fairlead takes over"
	}
	return line
}

// maxWebhooks is how many webhooks of a configuration are named, and how many causes.
const maxWebhooks = 3

// judgeAdmission has a line for each configuration by which writes are refused.
func judgeAdmission(f Facts) []Line {
	var lines []Line
	for _, a := range f.Admission {
		var why []string
		for _, cause := range a.NotServed {
			why = append(why, fmt.Sprintf("%s (%s)", cause.Why, bounded(cause.Webhooks, maxWebhooks, ", ")))
		}
		if len(why) > 0 {
			lines = append(lines, Line{
				Check: "admission", State: Warning,
				Message: fmt.Sprintf("%s %s has failurePolicy Fail, and is not served: %s. Writes of %s are refused", a.Kind, a.Name, bounded(why, maxWebhooks, "; "), strings.Join(a.Resources, ", ")),
				Action: fmt.Sprintf("start the controller that serves the webhook or, if the controller was stopped for good, `kubectl delete %s %s`: see docs/moving/README.md",
					strings.ToLower(a.Kind), a.Name),
			})
		}
		if len(a.NotTried) > 0 {
			lines = append(lines, Line{
				Check: "admission", State: Unknown,
				Message: fmt.Sprintf("%s %s has failurePolicy Fail and a URL: whether the API server reaches it is not known, as there is no object to try an update of (%s)",
					a.Kind, a.Name, bounded(a.NotTried, maxWebhooks, ", ")),
			})
		}
	}
	if why, unknown := f.Unknown["admission"]; unknown {
		lines = append(lines, Line{Check: "admission", State: Unknown, Message: why})
	}
	if lines == nil {
		return []Line{{Check: "admission", State: OK, Message: "no write is refused because a webhook is not served"}}
	}
	return lines
}

func judgeOperators(f Facts) []Line {
	if why, unknown := f.Unknown["operator"]; unknown {
		return []Line{{Check: "operator", State: Unknown, Message: why}}
	}
	var lines []Line
	for _, o := range f.Operators {
		line := Line{Check: "operator", State: OK, Message: fmt.Sprintf("Deployment %s/%s has %d of %d replicas ready", o.Namespace, o.Name, o.Ready, o.Wanted)}
		if o.Ready < o.Wanted || o.Wanted == 0 {
			line.State, line.Action = Failed, fmt.Sprintf("kubectl -n %s describe deployment %s", o.Namespace, o.Name)
		}
		lines = append(lines, line, judgeServiceAccount(o, f.Unknown["permissions of the operator"]),
			Line{Check: "charts", State: OK, Message: "Istio's charts come from " + cmp.Or(o.ChartSource, "Istio's own release charts")})
	}
	leads := 0
	line := Line{Check: "leaders", State: OK}
	for _, leader := range f.Leaders {
		leads += len(leader.Passages)
		if leader.Absent {
			line.Message = leader.Unknown
		} else if leader.Leader == "" && leader.Unknown != "" {
			return append(lines, Line{Check: "leaders", State: Unknown, Message: leader.Unknown})
		}
	}
	line.Message = cmp.Or(line.Message, fmt.Sprintf("%d passages have an operator that leads", leads))
	if leads == 0 {
		line.State, line.Action = Failed, "start an operator: helm install, or `fairlead operator`"
		if slices.ContainsFunc(f.Foreign, func(o Foreign) bool { return len(o.Observed.Deployments)+len(o.Observed.Objects) > 0 }) {
			line.State, line.Action = Warning, "a passage that holds has no leader: see above"
		}
	}
	return append(lines, line)
}

// maxLacking is how many permissions are named.
const maxLacking = 5

// judgeServiceAccount compares what an operator may do with what the chart of this version grants.
func judgeServiceAccount(o Operator, unknown string) Line {
	line := Line{Check: "operator", State: OK, Message: fmt.Sprintf("ServiceAccount %s has all %d permissions that the chart grants", o.ServiceAccount, o.Asked)}
	switch {
	case unknown != "":
		line.State, line.Message = Unknown, "what ServiceAccount "+o.ServiceAccount+" may do is not known: "+unknown
	case len(o.Lacking) > 0:
		line.State, line.Action = Failed, "upgrade the chart, which grants what its version needs"
		line.Message = fmt.Sprintf("ServiceAccount %s lacks %d of %d permissions: %s", o.ServiceAccount, len(o.Lacking), o.Asked, bounded(o.Lacking, maxLacking, ", "))
		if o.OtherVersion != "" { // which may need less
			line.State, line.Action = Warning, "use the fairlead of version "+o.OtherVersion+", as the operator, or upgrade the chart"
		}
	}
	return line
}

func judgeWebhook(f Facts, now time.Time) Line {
	line := Line{Check: "webhook", State: OK}
	w := f.Webhook
	switch {
	case f.Unknown["webhook"] != "":
		line.State, line.Message = Unknown, f.Unknown["webhook"]
	case w == nil:
		line.Message = "no CRD has a webhook"
	case w.Err != "":
		line.State, line.Message = Failed, "the API server cannot convert objects of "+w.CRD+": "+w.Err
		line.Action = "see that the operator is ready, and that a NetworkPolicy lets the API server reach it (networkPolicy.webhookFrom)"
	case w.Ends.IsZero():
		line.State, line.Message, line.Action = Failed, w.CRD+" trusts no certificate", "start the operator, which publishes its authority in the CRD"
	case w.Ends.Before(now):
		line.State, line.Message = Failed, fmt.Sprintf("the certificates that %s trusts ended at %s", w.CRD, w.Ends.UTC().Format(time.RFC3339))
		line.Action = "start the operator, which renews them; with the source secret, renew the Secret"
	default:
		line.Message = fmt.Sprintf("the API server reaches the webhook of %s; its authority ends at %s", w.CRD, w.Ends.UTC().Format(time.RFC3339))
		if w.Ends.Sub(now) < expiresSoon {
			line.State, line.Action = Warning, "renew the certificate: see docs/rollouts/certificates.md"
		}
	}
	return line
}

// judgeObjects has a line for each object that has a message, or one for all.
func judgeObjects(f Facts, check string, objects []Object, fine, action string) []Line {
	if why, unknown := f.Unknown[check]; unknown {
		return []Line{{Check: check, State: Unknown, Message: why}}
	}
	var lines []Line
	for _, object := range objects {
		if object.Message != "" {
			lines = append(lines, Line{Check: check, State: Failed, Message: object.Name + ": " + object.Message, Action: action})
		}
	}
	if lines == nil {
		return []Line{{Check: check, State: OK, Message: fine}}
	}
	return lines
}
