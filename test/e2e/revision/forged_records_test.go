package revision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/controlplane"
	"github.com/fairlead/fairlead/test/harness"
)

// TestForgedRecords: whoever may write Secrets in a namespace can make what looks like the records of our releases.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, namespace, tenant := shortName(t), w.namespace(t), w.namespace(t)
	revision := harness.Create(t, w, makeRevision(name, namespace, "v1.24.0"))
	ready(t, w, revision)
	tag := harness.Create(t, w, makeTag(name+"-tag", v1.IstioRevisionKind, name))
	w.points(t, tag, name)

	base := w.forge(t, "anchor", controlplane.BaseRelease, tenant, "v9.9.9")
	ofTag := w.forge(t, namespace, tag.Name+"-revisiontag", tenant, "v1.24.0")

	t.Log("the shared release stays as it is, and so do the tag and what was forged")
	another := harness.Create(t, w, makeRevision(name+"-b", namespace, "v1.26.0"))
	ready(t, w, another)
	harness.Change(t, w, tag, func(tag *v1.IstioRevisionTag) { tag.Spec.TargetRef.Name = another.Name })
	w.points(t, tag, another.Name)
	_, anchor := makeAnchor()
	says(t, w, anchor, v1.ConditionReconciled, v1.ReasonReconciled)
	for _, forged := range []*corev1.Secret{base, ofTag} {
		var now corev1.Secret
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(forged), &now); err != nil || now.ResourceVersion != forged.ResourceVersion {
			t.Errorf("Secret %s/%s is no longer as it was made: %v", forged.Namespace, forged.Name, err)
		}
	}
}

// forge copies the latest record of a release into another namespace, as one of a chart version.
func (w *world) forge(t *testing.T, from, release, to, version string) *corev1.Secret {
	t.Helper()
	var records corev1.SecretList
	if err := w.List(t.Context(), &records, client.InNamespace(from), client.MatchingLabels{"owner": "helm", "name": release}); err != nil {
		t.Fatal(err)
	}
	if len(records.Items) == 0 {
		t.Fatalf("release %s/%s has no record", from, release)
	}
	record := records.Items[len(records.Items)-1]
	forged := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: record.Name, Namespace: to, Labels: record.Labels},
		Type:       record.Type, Data: record.Data,
	}
	forged.Labels[v1.LabelChartVersion] = version
	return harness.Create(t, w, forged)
}
