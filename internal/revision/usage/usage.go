// Package usage knows which namespaces, workloads, pods and tags use a revision or a tag.
//
// Rules decide what each of them refers to, and an index counts references by name. A Tracker updates the index with the
// events of caches that hold little more than metadata, for the operator; List fills one from an API server, for the command
// line.
package usage

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// The kinds that use revisions and tags.
const (
	kindNamespace = "Namespace"
	kindPod       = "Pod"
)

// Reference is one object that uses a revision or tag.
type Reference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// By is the field that refers to the revision or tag: "label istio.io/rev=prod", "annotation istio.io/rev",
	// "spec.targetRef" and the like, or several of them.
	By string `json:"by"`
}

// String is the kind and name, as kubectl would find it.
func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// maxNames bounds the message of a condition; `fairlead status` lists all.
const maxNames = 5

// Usage counts the users of a name.
type Usage struct {
	Namespaces, Tags, Workloads, Pods int
	// Names are the first few: namespaces, then tags, then workloads, then pods.
	Names []string
	// Forbidden are resources that the API server refuses to list. With any of them, the counts are not reliable.
	Forbidden []string
}

// NameUsage is who uses a name.
type NameUsage struct {
	Name string
	Usage
}

// Known tells whether the counts are reliable.
func (u Usage) Known() bool { return len(u.Forbidden) == 0 }

// Used tells whether anything refers to the name, as far as known.
func (u Usage) Used() bool { return u.total() > 0 }

// OnlyTags tells whether tags refer to the name, and nothing else.
func (u Usage) OnlyTags() bool { return u.Tags > 0 && u.total() == u.Tags }

func (u Usage) total() int { return u.Namespaces + u.Tags + u.Workloads + u.Pods }

// String says how many use the name, and names the first of them.
func (u Usage) String() string {
	var counts []string
	for _, c := range []struct {
		n    int
		unit string
	}{{u.Namespaces, "namespace"}, {u.Tags, "tag"}, {u.Workloads, "workload"}, {u.Pods, "pod"}} {
		switch {
		case c.n == 1:
			counts = append(counts, "1 "+c.unit)
		case c.n > 1:
			counts = append(counts, fmt.Sprintf("%d %ss", c.n, c.unit))
		}
	}
	if len(counts) == 0 {
		return "nothing refers to this name"
	}
	if last := len(counts) - 1; last > 0 {
		counts = []string{strings.Join(counts[:last], ", "), counts[last]}
	}
	text := strings.Join(counts, " and ") + ": " + strings.Join(u.Names, ", ")
	if more := u.total() - len(u.Names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// Condition is the condition InUse.
func (u Usage) Condition() metav1.Condition {
	condition := metav1.Condition{Type: string(v1.ConditionInUse), Status: metav1.ConditionTrue, Message: u.String()}
	reason := v1.ReasonNotReferencedByAnything
	switch {
	case !u.Known():
		condition.Status, reason = metav1.ConditionUnknown, v1.ReasonUsageCheckFailed
		condition.Message = fmt.Sprintf(
			"usage is unknown, because the API server refuses to list %s; grant the operator list and watch on these in all namespaces, "+
				"as the Fairlead chart does. Until then no revision is pruned", strings.Join(u.Forbidden, " and "))
	case u.OnlyTags():
		reason = v1.ReasonReferencedByTag
	case u.Used():
		reason = v1.ReasonReferencedByWorkloads
	default:
		condition.Status = metav1.ConditionFalse
	}
	condition.Reason = string(reason)
	return condition
}
