package usage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// Each row is a namespace "shop" with a pod "cart" and perhaps a tag, and what the user is shown of each name that is
// used: the reason and message of InUse, and by what. Names that are not mentioned are used by nothing.
func TestRules(t *testing.T) {
	const (
		byNamespace = "ReferencedByWorkloads: 1 namespace: Namespace shop "
		byPod       = "ReferencedByWorkloads: 1 pod: Pod shop/cart "
	)
	type row struct {
		name       string
		namespace  string // labels
		pod        string // labels; "-" for no pod
		annotation string
		phase      corev1.PodPhase
		tag        string // target of tag prod
		status     string // revision in the status of tag prod
		revisions  map[string]string
		tags       map[string]string
	}
	type shown = map[string]string
	rows := []row{
		{name: "nothing says anything"},

		{
			name: "namespace names a revision", namespace: "istio.io/rev=r1",
			revisions: shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
		},
		{
			name: "namespace without pods counts", namespace: "istio.io/rev=r1", pod: "-",
			revisions: shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
		},
		{
			name: "namespace names default", namespace: "istio.io/rev=default",
			revisions: shown{"default": byNamespace + "(label istio.io/rev=default)"},
			tags:      shown{"default": byNamespace + "(label istio.io/rev=default)"},
		},
		{
			name: "injection enabled means default", namespace: "istio-injection=enabled",
			revisions: shown{"default": byNamespace + "(label istio-injection=enabled)"},
			tags:      shown{"default": byNamespace + "(label istio-injection=enabled)"},
		},
		{
			name: "injection enabled beats a revision", namespace: "istio-injection=enabled,istio.io/rev=r1",
			revisions: shown{"default": byNamespace + "(label istio-injection=enabled)"},
			tags:      shown{"default": byNamespace + "(label istio-injection=enabled)"},
		},
		{name: "injection disabled excludes the namespace", namespace: "istio-injection=disabled"},
		{name: "injection disabled beats a revision", namespace: "istio-injection=disabled,istio.io/rev=r1"},
		{name: "injection of another value excludes", namespace: "istio-injection=yes,istio.io/rev=r1", pod: "istio.io/rev=r1"},
		{name: "injection without a value excludes", namespace: "istio-injection=", pod: "istio.io/rev=r1"},
		{name: "empty revision names nothing", namespace: "istio.io/rev="},
		{name: "empty revision excludes pod labels", namespace: "istio.io/rev=", pod: "istio.io/rev=r1"},
		{name: "labels that mean something to pods alone", namespace: "sidecar.istio.io/inject=true"},

		{
			name: "pod names a revision", pod: "istio.io/rev=r1",
			revisions: shown{"r1": byPod + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byPod + "(label istio.io/rev=r1)"},
		},
		{
			name: "pod asks for a sidecar", pod: "sidecar.istio.io/inject=true",
			revisions: shown{"default": byPod + "(label sidecar.istio.io/inject=true)"},
			tags:      shown{"default": byPod + "(label sidecar.istio.io/inject=true)"},
		},
		{
			name: "pod enables injection", pod: "istio-injection=enabled",
			revisions: shown{"default": byPod + "(label istio-injection=enabled)"},
			tags:      shown{"default": byPod + "(label istio-injection=enabled)"},
		},
		{
			name: "pod's revision wins over its wish for a sidecar", pod: "istio.io/rev=r1,sidecar.istio.io/inject=true",
			revisions: shown{"r1": byPod + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byPod + "(label istio.io/rev=r1)"},
		},
		{
			name: "pod's revision wins over injection enabled", pod: "istio.io/rev=r1,istio-injection=enabled",
			revisions: shown{"r1": byPod + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byPod + "(label istio.io/rev=r1)"},
		},
		{name: "pod's empty revision names nothing", pod: "istio.io/rev=,sidecar.istio.io/inject=true"},
		{name: "pod that wants no sidecar", pod: "sidecar.istio.io/inject=false"},
		{name: "pod that wants no sidecar excludes its revision", pod: "sidecar.istio.io/inject=false,istio.io/rev=r1"},
		{name: "pod that wants no sidecar excludes its injection", pod: "sidecar.istio.io/inject=false,istio-injection=enabled"},
		{name: "pod that says neither true nor false", pod: "sidecar.istio.io/inject=maybe"},
		{
			name: "pod that says neither true nor false, with a revision", pod: "sidecar.istio.io/inject=maybe,istio.io/rev=r1",
			revisions: shown{"r1": byPod + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byPod + "(label istio.io/rev=r1)"},
		},
		{name: "pod disables injection", pod: "istio-injection=disabled"},

		{
			name: "namespace decides over its pod's revision", namespace: "istio.io/rev=prod", pod: "istio.io/rev=r1",
			revisions: shown{"prod": byNamespace + "(label istio.io/rev=prod)"},
			tags:      shown{"prod": byNamespace + "(label istio.io/rev=prod)"},
		},
		{
			name: "namespace decides over its pod's wish for a sidecar", namespace: "istio.io/rev=prod", pod: "sidecar.istio.io/inject=true",
			revisions: shown{"prod": byNamespace + "(label istio.io/rev=prod)"},
			tags:      shown{"prod": byNamespace + "(label istio.io/rev=prod)"},
		},
		{
			name: "namespace counts though its pod wants no sidecar", namespace: "istio.io/rev=r1", pod: "sidecar.istio.io/inject=false",
			revisions: shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
		},
		{
			name: "enabled namespace decides over its pod", namespace: "istio-injection=enabled", pod: "istio.io/rev=r1",
			revisions: shown{"default": byNamespace + "(label istio-injection=enabled)"},
			tags:      shown{"default": byNamespace + "(label istio-injection=enabled)"},
		},
		{name: "excluded namespace excludes its pod's labels", namespace: "istio-injection=disabled", pod: "istio.io/rev=r1,sidecar.istio.io/inject=true"},

		{
			name: "annotation counts for the revision alone", annotation: "r1",
			revisions: shown{"r1": byPod + "(annotation istio.io/rev)"},
		},
		{
			name: "annotation counts in an excluded namespace", namespace: "istio-injection=disabled", annotation: "r1",
			revisions: shown{"r1": byPod + "(annotation istio.io/rev)"},
		},
		{
			name: "annotation counts on an excluded pod", pod: "sidecar.istio.io/inject=false", annotation: "r1",
			revisions: shown{"r1": byPod + "(annotation istio.io/rev)"},
		},
		{
			name: "annotation and label on one pod count once", pod: "istio.io/rev=r1", annotation: "r1",
			revisions: shown{"r1": byPod + "(label istio.io/rev=r1 and annotation istio.io/rev)"},
			tags:      shown{"r1": byPod + "(label istio.io/rev=r1)"},
		},
		{
			name: "pod labelled with a tag and injected by a revision", pod: "istio.io/rev=prod", annotation: "r1",
			revisions: shown{"prod": byPod + "(label istio.io/rev=prod)", "r1": byPod + "(annotation istio.io/rev)"},
			tags:      shown{"prod": byPod + "(label istio.io/rev=prod)"},
		},
		{
			name: "namespace has moved on, its pod not yet", namespace: "istio.io/rev=prod", annotation: "r1",
			revisions: shown{"prod": byNamespace + "(label istio.io/rev=prod)", "r1": byPod + "(annotation istio.io/rev)"},
			tags:      shown{"prod": byNamespace + "(label istio.io/rev=prod)"},
		},
		{
			name: "namespace and pod use the same revision", namespace: "istio.io/rev=r1", annotation: "r1",
			revisions: shown{"r1": "ReferencedByWorkloads: 1 namespace and 1 pod: Namespace shop, Pod shop/cart " +
				"(label istio.io/rev=r1; annotation istio.io/rev)"},
			tags: shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
		},
		{
			name: "injected by the default revision", namespace: "istio-injection=enabled", annotation: "default",
			revisions: shown{"default": "ReferencedByWorkloads: 1 namespace and 1 pod: Namespace shop, Pod shop/cart " +
				"(label istio-injection=enabled; annotation istio.io/rev)"},
			tags: shown{"default": byNamespace + "(label istio-injection=enabled)"},
		},

		{
			name: "pending pod counts", pod: "istio.io/rev=r1", phase: corev1.PodPending,
			revisions: shown{"r1": byPod + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byPod + "(label istio.io/rev=r1)"},
		},
		{
			name: "pod of unknown phase counts", annotation: "r1", phase: corev1.PodUnknown,
			revisions: shown{"r1": byPod + "(annotation istio.io/rev)"},
		},
		{name: "pod that succeeded does not count by label", pod: "istio.io/rev=r1", phase: corev1.PodSucceeded},
		{name: "pod that succeeded does not count by annotation", annotation: "r1", phase: corev1.PodSucceeded},
		{name: "pod that failed does not count", pod: "istio.io/rev=r1", annotation: "r1", phase: corev1.PodFailed},
		{
			name: "namespace of a pod that failed counts", namespace: "istio.io/rev=r1", annotation: "r1", phase: corev1.PodFailed,
			revisions: shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
			tags:      shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
		},

		{
			name: "fixed tag", tag: "IstioRevision/r1",
			revisions: shown{"r1": "ReferencedByTag: 1 tag: IstioRevisionTag prod (spec.targetRef)"},
		},
		{
			name: "fixed tag that is there", tag: "IstioRevision/r1", status: "r1",
			revisions: shown{"r1": "ReferencedByTag: 1 tag: IstioRevisionTag prod (spec.targetRef and status.istioRevision)"},
		},
		{
			name: "fixed tag on its way", tag: "IstioRevision/r1", status: "default",
			revisions: shown{
				"r1":      "ReferencedByTag: 1 tag: IstioRevisionTag prod (spec.targetRef)",
				"default": "ReferencedByTag: 1 tag: IstioRevisionTag prod (status.istioRevision)",
			},
		},
		{name: "floating tag that is nowhere yet", tag: "Istio/r1"},
		{
			name: "floating tag", tag: "Istio/default", status: "r1",
			revisions: shown{"r1": "ReferencedByTag: 1 tag: IstioRevisionTag prod (status.istioRevision)"},
		},
		{
			name: "tag in use, injected pods of its revision", namespace: "istio.io/rev=prod", annotation: "r1", tag: "Istio/default", status: "r1",
			revisions: shown{
				"prod": byNamespace + "(label istio.io/rev=prod)",
				"r1": "ReferencedByWorkloads: 1 tag and 1 pod: IstioRevisionTag prod, Pod shop/cart " +
					"(status.istioRevision; annotation istio.io/rev)",
			},
			tags: shown{"prod": byNamespace + "(label istio.io/rev=prod)"},
		},
		{
			name: "tag unused, its revision used by name", namespace: "istio.io/rev=r1", tag: "IstioRevision/r1",
			revisions: shown{"r1": "ReferencedByWorkloads: 1 namespace and 1 tag: Namespace shop, IstioRevisionTag prod " +
				"(label istio.io/rev=r1; spec.targetRef)"},
			tags: shown{"r1": byNamespace + "(label istio.io/rev=r1)"},
		},
		{
			name: "tag and revision when the pod has ended", pod: "istio.io/rev=prod", annotation: "r1", phase: corev1.PodSucceeded,
			tag: "Istio/default", status: "r1",
			revisions: shown{"r1": "ReferencedByTag: 1 tag: IstioRevisionTag prod (status.istioRevision)"},
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			l := newIndex()
			l.observeNamespace(makeNamespace("shop", r.namespace))
			if r.pod != "-" && watched(r.phase) {
				l.observePod(makePod("shop", "cart", r.pod, r.annotation))
			}
			if r.tag != "" {
				l.observeTag(makeTag("prod", r.tag, r.status))
			}
			for _, name := range []string{"default", "prod", "r1"} {
				if diff := cmp.Diff(orUnused(r.revisions[name]), reported(l, name, asRevision)); diff != "" {
					t.Errorf("revision %s:\n%s", name, diff)
				}
				if diff := cmp.Diff(orUnused(r.tags[name]), reported(l, name, asTag)); diff != "" {
					t.Errorf("tag %s:\n%s", name, diff)
				}
			}
		})
	}
}

func orUnused(text string) string {
	if text == "" {
		return "NotReferencedByAnything: nothing refers to this name"
	}
	return text
}

// reported is what a user reads of a name: the condition, and in brackets the references' By.
func reported(l *index, name string, as role) string {
	condition := l.usage(name, as).Condition()
	text := fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
	var by []string
	for _, reference := range l.references(name, as) {
		by = append(by, reference.By)
	}
	if len(by) > 0 {
		text += " (" + strings.Join(by, "; ") + ")"
	}
	return text
}
