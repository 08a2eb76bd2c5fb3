package istio

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

var epoch = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

type istioBuilder struct{ *v1.Istio }

func makeIstio(name string) istioBuilder {
	return istioBuilder{&v1.Istio{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: v1.IstioSpec{
			Version:        "v1.24.0",
			Namespace:      "istio-system",
			UpdateStrategy: v1.IstioUpdateStrategy{Type: v1.UpdateStrategyInPlace},
		},
	}}
}

func (b istioBuilder) version(version string) istioBuilder { b.Spec.Version = version; return b }

func (b istioBuilder) revisionBased() istioBuilder {
	b.Spec.UpdateStrategy.Type = v1.UpdateStrategyRevisionBased
	return b
}

func (b istioBuilder) grace(seconds int64) istioBuilder {
	b.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = &seconds
	return b
}

func (b istioBuilder) values(values v1.Values) istioBuilder { b.Spec.Values = values; return b }

func (b istioBuilder) profile(profile string) istioBuilder { b.Spec.Profile = profile; return b }

func (b istioBuilder) paused(value string) istioBuilder {
	b.Annotations = map[string]string{fairlead.AnnotationPaused: value}
	return b
}

func (b istioBuilder) deleting() istioBuilder {
	b.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
	return b
}

func (b istioBuilder) active(revision string) istioBuilder {
	b.Status.ActiveRevisionName = revision
	return b
}

// reconciled is what the operator has reported for a generation.
func (b istioBuilder) reconciled(status metav1.ConditionStatus, reason v1.Reason, generation int64) istioBuilder {
	b.Status.ObservedGeneration = generation
	b.Status.Conditions = []metav1.Condition{{Type: string(v1.ConditionReconciled), Status: status, Reason: string(reason), Message: "reported"}}
	return b
}

type revisionBuilder struct{ Revision }

// makeRevision is a revision as this passage writes it.
func makeRevision(name, version string) revisionBuilder {
	spec := v1.IstioRevisionSpec{Version: version, Namespace: "istio-system"}
	return revisionBuilder{Revision{
		IstioRevision: &v1.IstioRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
			Spec:       spec,
		},
		Written: spec,
	}}
}

func (b revisionBuilder) of(istio string) revisionBuilder {
	b.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: v1.IstioKind, Name: istio,
		UID: types.UID("uid-of-" + istio), Controller: ptr.To(true),
	}}
	return b
}

func (b revisionBuilder) values(values v1.Values) revisionBuilder {
	b.Spec.Values, b.Written.Values = values, values.DeepCopy()
	return b
}

// extended is a revision whose values somebody else added to.
func (b revisionBuilder) extended(values v1.Values) revisionBuilder {
	b.Spec.Values = values
	return b
}

func (b revisionBuilder) deleting() revisionBuilder {
	b.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
	return b
}

func (b revisionBuilder) finalizers(finalizers ...string) revisionBuilder {
	b.Finalizers = finalizers
	return b
}

func (b revisionBuilder) generation(generation int64) revisionBuilder {
	b.Generation = generation
	return b
}

func (b revisionBuilder) condition(kind v1.ConditionType, status metav1.ConditionStatus, reason v1.Reason, message string) revisionBuilder {
	b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: string(reason), Message: message, ObservedGeneration: 1,
	})
	return b
}

func (b revisionBuilder) ready() revisionBuilder {
	return b.condition(v1.ConditionReady, metav1.ConditionTrue, v1.ReasonIstiodReady, "")
}

// unused is a revision that nothing uses since the epoch.
func (b revisionBuilder) unused() revisionBuilder { return b.unusedSince(epoch) }

func (b revisionBuilder) unusedSince(since time.Time) revisionBuilder {
	b = b.condition(v1.ConditionInUse, metav1.ConditionFalse, v1.ReasonNotReferencedByAnything, "")
	b.Status.Conditions[len(b.Status.Conditions)-1].LastTransitionTime = metav1.NewTime(since)
	return b
}

func (b revisionBuilder) inactive(since time.Time) revisionBuilder {
	b.Annotations = map[string]string{v1.AnnotationInactiveSince: since.Format(time.RFC3339)}
	return b
}

type users map[string]usage.Usage

func (u users) Revision(name string) usage.Usage { return u[name] }

func (u users) Tag(name string) usage.Usage { return u[name] }

// observed is an Istio with charts of the version that it asks for, among others.
func observed(istio istioBuilder, revisions ...revisionBuilder) Observed {
	o := Observed{Istio: istio.Istio, Usage: users{}, Charts: Charts{Versions: []string{"v1.26.0", "v1.24.0", istio.Spec.Version}}}
	for _, r := range revisions {
		o.Revisions = append(o.Revisions, r.Revision)
	}
	return o
}

func (o Observed) charts(versions ...string) Observed { o.Charts.Versions = versions; return o }

func (o Observed) noCharts() Observed {
	o.Charts = Charts{Err: errors.New("no answer")}
	return o
}

// unreadableCharts are charts that only the operator can read.
func (o Observed) unreadableCharts() Observed {
	o = o.noCharts()
	o.Charts.UseReportedError = true
	return o
}

func (o Observed) used(names ...string) Observed {
	for _, name := range names {
		o = o.usedBy(name, usage.Usage{Pods: 1, Names: []string{"Pod shop/cart"}})
	}
	return o
}

func (o Observed) usedBy(name string, by usage.Usage) Observed {
	o.Usage.(users)[name] = by
	return o
}

func (o Observed) tagged(name, current string) Observed {
	tag := v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: name}}
	tag.Spec.TargetRef = v1.TargetReference{Kind: v1.IstioKind, Name: o.Istio.Name}
	tag.Status.IstioRevision = current
	o.Tags = append(o.Tags, tag)
	return o
}

// refusedTag is a tag that is not reconciled for a reason.
func (o Observed) refusedTag(name string, reason v1.Reason) Observed {
	for i := range o.Tags {
		if o.Tags[i].Name == name {
			o.Tags[i].Status.Conditions = []metav1.Condition{{
				Type: string(v1.ConditionReconciled), Status: metav1.ConditionFalse, Reason: string(reason), Message: "taken",
			}}
		}
	}
	return o
}

func (o Observed) pausedTag(name string) Observed {
	for i := range o.Tags {
		if o.Tags[i].Name == name {
			o.Tags[i].Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
		}
	}
	return o
}
