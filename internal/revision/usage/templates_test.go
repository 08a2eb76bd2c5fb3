package usage

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// makeWorkload has a pod template with labels, and no pods.
func makeWorkload(kind, name, with string) client.Object {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "cart"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelled(with)}}
	template.Labels["app"] = "cart"
	switch kind {
	case "CronJob":
		job := batchv1.JobSpec{Template: template}
		return &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: job}}}
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}}
	case "Deployment":
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Template: template}}
	case "Job":
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}
	case "ReplicaSet":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Template: template}}
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Template: template}}
	}
	panic(kind)
}

// annotated has the annotation istio.io/rev in its pod template.
func annotated(workload client.Object, revision string) client.Object {
	if revision == "" {
		return workload
	}
	annotations := map[string]string{v1.AnnotationRevision: revision}
	switch w := workload.(type) {
	case *batchv1.CronJob:
		w.Spec.JobTemplate.Spec.Template.Annotations = annotations
	case *appsv1.DaemonSet:
		w.Spec.Template.Annotations = annotations
	case *appsv1.Deployment:
		w.Spec.Template.Annotations = annotations
	case *batchv1.Job:
		w.Spec.Template.Annotations = annotations
	case *appsv1.ReplicaSet:
		w.Spec.Template.Annotations = annotations
	case *appsv1.StatefulSet:
		w.Spec.Template.Annotations = annotations
	}
	return workload
}

func ownedBy(workload client.Object, kind string, controller bool) client.Object {
	workload.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: "cart", Controller: &controller}})
	return workload
}

func jobWith(condition batchv1.JobConditionType, status corev1.ConditionStatus) client.Object {
	job := makeWorkload("Job", "cart", "istio.io/rev=r1").(*batchv1.Job)
	job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: status}}
	return job
}

// Each row is a workload "cart" in a namespace "shop", and how it is shown as a user of the revision or tag r1.
func TestWorkloads(t *testing.T) {
	const (
		byLabel      = "ReferencedByWorkloads: 1 workload: KIND shop/cart (label istio.io/rev=r1 of the pod template)"
		byAnnotation = "ReferencedByWorkloads: 1 workload: KIND shop/cart (annotation istio.io/rev of the pod template)"
		off          = "sidecar.istio.io/inject=false"
	)
	type row struct {
		namespace string // labels
		workload  client.Object
		want      string // empty for unused
	}
	rows := map[string]row{
		"Job that is suspended":      {workload: jobWith(batchv1.JobSuspended, "True"), want: byLabel},
		"Job that was suspended":     {workload: jobWith(batchv1.JobComplete, "False"), want: byLabel},
		"Job that is complete":       {workload: jobWith(batchv1.JobComplete, "True")},
		"Job that has failed":        {workload: jobWith(batchv1.JobFailed, "True")},
		"Job of a CronJob":           {workload: ownedBy(makeWorkload("Job", "cart", "istio.io/rev=r1"), "CronJob", true), want: byLabel},
		"ReplicaSet of a Deployment": {workload: ownedBy(makeWorkload("ReplicaSet", "cart", "istio.io/rev=r1"), "Deployment", true)},
		"ReplicaSet of a Rollout":    {workload: ownedBy(makeWorkload("ReplicaSet", "cart", "istio.io/rev=r1"), "Rollout", true)},
		"orphaned ReplicaSet": {
			workload: makeWorkload("ReplicaSet", "cart", "istio.io/rev=r1,pod-template-hash=5d4f8"), want: byLabel,
		},
		"ReplicaSet with an owner that does not control it": {
			workload: ownedBy(makeWorkload("ReplicaSet", "cart", "istio.io/rev=r1"), "Deployment", false), want: byLabel,
		},
		"Deployment of another controller": {
			workload: ownedBy(makeWorkload("Deployment", "cart", "istio.io/rev=r1"), "Shop", true), want: byLabel,
		},
	}
	for _, k := range templateKinds {
		named := makeWorkload(k.kind, "cart", "istio.io/rev=r1")
		rows[k.kind] = row{workload: named, want: byLabel}
		rows[k.kind+" in a namespace that names the revision"] = row{
			namespace: "istio.io/rev=r1", workload: named,
			want: "ReferencedByWorkloads: 1 namespace: Namespace shop (label istio.io/rev=r1)",
		}
		rows[k.kind+" in a namespace that names another"] = row{namespace: "istio.io/rev=r2", workload: named}
		rows[k.kind+" in a namespace without injection"] = row{namespace: "istio-injection=disabled", workload: named}
		rows[k.kind+" that names another"] = row{workload: makeWorkload(k.kind, "cart", "istio.io/rev=r2")}
		rows[k.kind+" without sidecars"] = row{workload: makeWorkload(k.kind, "cart", "istio.io/rev=r1,sidecar.istio.io/inject=false")}
		gateway := annotated(makeWorkload(k.kind, "cart", off), "r1")
		rows[k.kind+" of a gateway"] = row{workload: gateway, want: byAnnotation}
		rows[k.kind+" of a gateway, in a namespace that names another"] = row{namespace: "istio.io/rev=r2", workload: gateway, want: byAnnotation}
		rows[k.kind+" of a gateway of another"] = row{workload: annotated(makeWorkload(k.kind, "cart", off), "r2")}
		rows[k.kind+" of a control plane"] = row{workload: makeWorkload(k.kind, "cart", off+",istio.io/rev=r1")}
		rows[k.kind+" whose annotation injection replaces"] = row{workload: annotated(makeWorkload(k.kind, "cart", ""), "r1")}
		rows[k.kind+" that names nothing"] = row{workload: makeWorkload(k.kind, "cart", "")}
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			trimmed, err := trimTemplate(r.workload)
			if err != nil {
				t.Fatal(err)
			}
			kind := reflect.TypeOf(r.workload).Elem().Name()
			for state, object := range map[string]any{"whole": r.workload, "trimmed": trimmed} {
				x := newIndex()
				x.observeWorkload(kind, object.(metav1.Object))
				x.observeNamespace(makeNamespace("shop", r.namespace))
				for _, as := range []role{asRevision, asTag} {
					want := orUnused(strings.Replace(r.want, "KIND", kind, 1))
					if r.want == byAnnotation && as == asTag {
						want = orUnused("")
					}
					if diff := cmp.Diff(want, reported(x, "r1", as)); diff != "" {
						t.Errorf("%s: %s", state, diff)
					}
				}
				x.setWorkload("shop", workload{kind, "cart"}, pod{})
				x.observeNamespace(makeNamespace("shop", ""))
				if n := len(x.users) + len(x.namespaces); n > 0 {
					t.Errorf("%s: %d entries are left of what is gone", state, n)
				}
			}
		})
	}
}

// A Deployment that uses the default revision by another label is shown with that label.
func TestWorkloadUsesDefault(t *testing.T) {
	x := newIndex()
	x.observeWorkload("Deployment", makeWorkload("Deployment", "cart", "sidecar.istio.io/inject=true"))
	want := "ReferencedByWorkloads: 1 workload: Deployment shop/cart (label sidecar.istio.io/inject=true of the pod template)"
	if diff := cmp.Diff(want, reported(x, "default", asTag)); diff != "" {
		t.Error(diff)
	}
}

func TestTrimTemplate(t *testing.T) {
	for _, k := range templateKinds {
		full := makeWorkload(k.kind, "cart", "istio.io/rev=r1")
		full.SetResourceVersion("7")
		full.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "cart", ResourceVersion: "7", Labels: labelled("istio.io/rev=r1"),
		}}
		got, err := trimTemplate(full)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Errorf("%s: %s", k.kind, diff)
		}
		if again, err := trimTemplate(got); err != nil || again != got {
			t.Errorf("%s: trimmed twice: %v, %v", k.kind, again, err)
		}
		if size, empty := unsafe.Sizeof(*want), reflect.TypeOf(full).Elem().Size(); size*3 > empty {
			t.Errorf("%s: %d bytes trimmed, %d empty", k.kind, size, empty)
		}
	}
}

func TestTemplateCacheOptions(t *testing.T) {
	own := &appsv1.Deployment{}
	options := TemplateCacheOptions(map[client.Object]cache.ByObject{own: {}})
	if len(options) != len(templateKinds) {
		t.Errorf("%d kinds are cached, want %d", len(options), len(templateKinds))
	}
	if by, ok := options[own]; !ok || by.Transform != nil {
		t.Error("the own options of a kind are lost")
	}
}
