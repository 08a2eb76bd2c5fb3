package controlplane

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

var epoch = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

type revisionBuilder struct{ *v1.IstioRevision }

func makeRevision(name, version string) revisionBuilder {
	return revisionBuilder{&v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1.IstioRevisionSpec{Version: version, Namespace: "istio-system"},
	}}
}

func (b revisionBuilder) age(minutes int) revisionBuilder {
	b.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Duration(minutes) * time.Minute))
	return b
}

func (b revisionBuilder) in(namespace string) revisionBuilder { b.Spec.Namespace = namespace; return b }

func (b revisionBuilder) values(values v1.Values) revisionBuilder { b.Spec.Values = values; return b }

func (b revisionBuilder) deleting() revisionBuilder {
	return revisionBuilder{func() *v1.IstioRevision {
		going := b.DeepCopy()
		going.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
		return going
	}()}
}

func (b revisionBuilder) generation(generation int64) revisionBuilder {
	b.Generation = generation
	return b
}

// reconciled is a revision of which all was installed.
func (b revisionBuilder) reconciled() revisionBuilder {
	b.Status.Conditions = []metav1.Condition{{
		Type: string(v1.ConditionReconciled), Status: metav1.ConditionTrue, ObservedGeneration: b.Generation,
	}}
	return b
}

func (b revisionBuilder) paused() revisionBuilder {
	b.Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
	return b
}

func candidates(revisions ...revisionBuilder) []RevisionCandidate {
	var all []RevisionCandidate
	for _, r := range revisions {
		all = append(all, RevisionCandidate{IstioRevision: r.IstioRevision, Installable: true})
	}
	return all
}

// wanted is a release of a chart that has nothing in it.
func wanted(namespace, name, version string) *release.Spec {
	return &release.Spec{
		Name: name, Namespace: namespace, ChartVersion: version,
		Chart: &charts.Chart{Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "x", Version: version}}, Digest: "sha256:" + version},
	}
}

func installed(spec *release.Spec) installer.Release {
	return installer.Release{Name: spec.Name, Namespace: spec.Namespace, Wanted: spec, State: release.State{
		Name: spec.Name, Namespace: spec.Namespace, Exists: true, Version: 1, Status: "deployed", Fingerprint: spec.Fingerprint(),
		ChartVersion: spec.ChartVersion,
	}}
}

func missing(spec *release.Spec) installer.Release {
	return installer.Release{Name: spec.Name, Namespace: spec.Namespace, Wanted: spec}
}

// healthy is a revision whose control plane serves; it looks after the base release.
func healthy(revision revisionBuilder) Observed {
	name, namespace, version := revision.Name, revision.Spec.Namespace, revision.Spec.Version
	return Observed{
		Revision:    revision.IstioRevision,
		Namespace:   true,
		Istiod:      installed(wanted(namespace, istiodRelease(name), version)),
		Base:        installed(wanted(namespace, BaseRelease, version)),
		ManagesBase: true,
		Deployments: []appsv1.Deployment{deployment(1, 1, 1, 1)},
	}
}

func (o Observed) with(change func(*Observed)) Observed { change(&o); return o }

func deployment(replicas, updated, available int32, observed int64) appsv1.Deployment {
	return appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "istio-system", Name: "istiod", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{
			Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available, ObservedGeneration: observed,
		},
	}
}
