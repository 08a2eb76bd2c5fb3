package foreign

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/crds"
)

var now = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	running := Observed{Deployments: []Deployment{{"sail-operator", "sail-operator", 1, 1}}}
	stopped := Observed{Deployments: []Deployment{{"sail-operator", "sail-operator", 0, 0}}}
	ending := Observed{Deployments: []Deployment{{"sail-operator", "sail-operator", 0, 2}}}
	leads := Observed{Leases: []Lease{{"sail-operator", "sail-operator-lock", "sail-operator-0", true}}}
	led := Observed{Leases: []Lease{{"sail-operator", "sail-operator-lock", "sail-operator-0", false}}}
	trace := Object{Kind: "Istio", Name: "default", Manager: "sail-operator", Wrote: now.Add(-time.Hour)}
	writing := trace
	writing.Wrote = now.Add(-time.Minute)
	waits := Object{Kind: "IstioRevision", Name: "default", Finalizers: []string{"sailoperator.io/sail-operator"}}
	claimed := writing
	claimed.Claimed = true
	objects := func(all ...Object) Observed { return Observed{Objects: all} }
	owned := Observed{CRDs: []CRD{{"istios.sailoperator.io", "Helm release istio-system/sail"}}}

	for name, test := range map[string]struct {
		observed Observed
		takeOver bool
		hold     bool
		acts     bool
		// says are parts of the message or action.
		says []string
	}{
		"nobody":                                  {Observed{}, false, false, false, nil},
		"nobody, and asked to take over":          {Observed{}, true, false, false, nil},
		"its Deployment runs":                     {running, false, true, true, []string{"Deployment sail-operator/sail-operator is scaled to 1", "scale Deployment sail-operator/sail-operator to 0", "--take-over revision", "--passages"}},
		"its Deployment runs, to be taken over":   {running, true, true, true, []string{"scale Deployment sail-operator/sail-operator to 0; then the passage goes on by itself"}},
		"its Deployment is scaled to 0":           {stopped, false, false, false, nil},
		"its Deployment is scaled to 0, and runs": {ending, false, true, true, []string{"Deployment sail-operator/sail-operator is scaled to 0 and still has 2 pods", "wait until the pods of Deployment sail-operator/sail-operator have ended"}},
		"it still runs, to be taken over":         {ending, true, true, true, []string{"still has 2 pods", "then the passage goes on by itself"}},
		"its lease is renewed":                    {leads, false, true, true, []string{"Lease sail-operator/sail-operator-lock is renewed by sail-operator-0", "stop sail-operator-0"}},
		"its lease is renewed, to be taken over":  {leads, true, true, true, []string{"stop sail-operator-0"}},
		"its lease has run out":                   {led, false, false, false, nil},
		"it wrote long ago":                       {objects(trace), false, true, false, []string{"has left traces", "Istio default has fields of sail-operator", "if the Sail Operator no longer runs anywhere"}},
		"it wrote long ago, to be taken over":     {objects(trace), true, false, false, nil},
		"it still writes":                         {objects(trace, writing), false, true, true, []string{"Istio default has just been written by sail-operator"}},
		"it still writes, to be taken over":       {objects(writing), true, true, true, []string{"stop sail-operator", "2 minutes after its last write"}},
		"its finalizer":                           {objects(waits), false, true, false, []string{"IstioRevision default has the finalizer sailoperator.io/sail-operator"}},
		"its finalizer, to be taken over":         {objects(waits), true, false, false, nil},
		"Fairlead has written since":              {objects(claimed), false, false, false, nil},
		"its CRD":                                 {owned, false, true, false, []string{"CRD istios.sailoperator.io belongs to Helm release istio-system/sail"}},
		"its CRD, to be taken over":               {owned, true, false, false, nil},
		"its CRD, and it runs, to be taken over":  {Observed{Deployments: running.Deployments, CRDs: owned.CRDs}, true, true, true, []string{"scale Deployment"}},
		"a message is bounded":                    {objects(waits, waits, waits, waits, waits), false, true, false, []string{"and 2 more"}},
		"one that cannot be read holds nothing":   {Observed{Unknown: []Unknown{{"Lease", Forbidden, "no"}}}, false, false, false, nil},
		"what is unknown hides not what is known": {Observed{Unknown: []Unknown{{"Lease", Forbidden, "no"}}, Deployments: running.Deployments}, false, true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := Of("revision")
			d := Decide(s, test.observed, test.takeOver, now)
			if d.Hold != test.hold || d.Acts != test.acts {
				t.Errorf("holds: %t, acts: %t; want %t, %t", d.Hold, d.Acts, test.hold, test.acts)
			}
			text := d.Message(s) + "\n" + d.Action
			for _, part := range test.says {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
		})
	}
}

func TestTrace(t *testing.T) {
	at := func(manager string, ago time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: ptr.To(metav1.NewTime(now.Add(-ago)))}
	}
	for name, test := range map[string]struct {
		writes     []metav1.ManagedFieldsEntry
		finalizers []string
		tenants    bool
		found      bool
		claimed    bool
	}{
		"a tenant's, who pretends": {
			writes: []metav1.ManagedFieldsEntry{at("sail-operator", time.Hour)}, finalizers: []string{"sailoperator.io/sail-operator"}, tenants: true,
		},
		"the status of a tenant's": {
			writes: []metav1.ManagedFieldsEntry{{Manager: "sail-operator", Subresource: "status", Time: ptr.To(metav1.NewTime(now))}}, tenants: true, found: true,
		},
		"a user's": {writes: []metav1.ManagedFieldsEntry{at("kubectl-client-side-apply", time.Hour), at("helm", time.Hour)}},
		"Fairlead's": {
			writes:     []metav1.ManagedFieldsEntry{at("fairlead/revision", time.Hour), at("fairlead/migration", time.Hour)},
			finalizers: []string{"fairlead.dev/uninstall"},
		},
		"the system's":               {writes: []metav1.ManagedFieldsEntry{at("sail-operator", time.Hour)}, found: true},
		"of one that has been there": {finalizers: []string{"sailoperator.io/sail-operator"}, found: true},
		"taken over":                 {writes: []metav1.ManagedFieldsEntry{at("sail-operator", time.Hour), at("fairlead/revision", time.Minute)}, found: true, claimed: true},
		"given back":                 {writes: []metav1.ManagedFieldsEntry{at("fairlead/revision", time.Hour), at("sail-operator", time.Minute)}, found: true},
		"that Fairlead holds is no claim": {
			writes: []metav1.ManagedFieldsEntry{at("sail-operator", time.Hour), at(FieldOwner, time.Minute)}, found: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observer{System: Of("revision")}
			kind := o.System.Kinds[0]
			kind.Tenants = test.tenants
			object, found := o.trace(kind, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: "default", Finalizers: test.finalizers, ManagedFields: test.writes,
			}})
			if found != test.found || found && object.Claimed != test.claimed {
				t.Errorf("found: %t, claimed: %t; want %t, %t", found, object.Claimed, test.found, test.claimed)
			}
		})
	}
}

func TestIsRenewed(t *testing.T) {
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(renewed)), LeaseDurationSeconds: ptr.To[int32](15),
		}}
	}
	clock := now
	o := &Observer{Now: func() time.Time { return clock }, renewals: map[string]renewal{}}
	// The clock of the other controller is ten minutes behind.
	renewed := now.Add(-10 * time.Minute)
	if !o.isRenewed(lease("other", renewed)) {
		t.Error("a lease that was seen once may be renewed")
	}
	clock = clock.Add(10 * time.Second)
	if !o.isRenewed(lease("other", renewed.Add(10*time.Second))) {
		t.Error("the lease was renewed")
	}
	clock = clock.Add(16 * time.Second)
	if o.isRenewed(lease("other", renewed.Add(10*time.Second))) {
		t.Error("the lease was not renewed for longer than it lasts")
	}
	if o.isRenewed(lease("", renewed.Add(time.Minute))) {
		t.Error("the lease is free")
	}
	if o.isRenewed(lease("gone", now.Add(-2*time.Hour))) {
		t.Error("the holder has been gone for hours")
	}
	once := &Observer{Once: true, Now: func() time.Time { return now }}
	if !once.isRenewed(lease("other", now.Add(-20*time.Second))) || once.isRenewed(lease("other", now.Add(-time.Minute))) {
		t.Error("an observer that looks once goes by the clock")
	}
}

func TestOwnerOfCRD(t *testing.T) {
	for name, test := range map[string]struct {
		annotations, labels map[string]string
		managers            []string
		want                string
	}{
		"nobody who says so": {managers: []string{"kubectl-create"}},
		"Fairlead's":         {annotations: map[string]string{crds.SchemaVersionAnnotation: "3"}, managers: []string{"fairlead/crds", "sail-operator"}},
		"Fairlead's, in a Helm release": {annotations: map[string]string{
			crds.SchemaVersionAnnotation: "3", "meta.helm.sh/release-name": "platform", "meta.helm.sh/release-namespace": "infra",
		}},
		"of a Helm release": {
			annotations: map[string]string{"meta.helm.sh/release-name": "sail", "meta.helm.sh/release-namespace": "istio-system"},
			want:        "Helm release istio-system/sail",
		},
		"of OLM":         {labels: map[string]string{"operators.coreos.com/sailoperator.operators": ""}, want: "the Operator Lifecycle Manager, for sailoperator.operators"},
		"of the system":  {managers: []string{"sail-operator"}, want: "sail-operator"},
		"of another one": {managers: []string{"karmada-controller-manager"}},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations, Labels: test.labels}}
			for _, manager := range test.managers {
				crd.ManagedFields = append(crd.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
			}
			if got := (&Observer{System: Of("revision")}).ownerOf(crd); got != test.want {
				t.Errorf("owner %q, want %q", got, test.want)
			}
		})
	}
}

// TestSystems: whatever tells a system of one passage tells none of another, and nothing of Fairlead.
func TestSystems(t *testing.T) {
	seen := map[string]string{}
	for _, s := range Systems() {
		for _, sign := range [][]string{s.Deployments, s.Leases, s.Images, s.Managers, s.Finalizers} {
			for _, name := range sign {
				if other, known := seen[name]; known && other != s.Name {
					t.Errorf("%s tells %s and %s", name, s.Name, other)
				}
				seen[name] = s.Name
				if strings.Contains(name, "fairlead") {
					t.Errorf("%s tells %s, and is of Fairlead", name, s.Name)
				}
			}
		}
	}
}

func TestImages(t *testing.T) {
	s := Of("revision")
	for image, want := range map[string]bool{
		"quay.io/sail-dev/sail-operator:1.27.0":         true,
		"127.0.0.1:5000/mirror/sail-operator@sha256:00": true,
		"sail-operator": true,
		"quay.io/sail-dev/sail-operator-bundle:1.27.0": false,
		"docker.io/istio/pilot:1.26.0":                 false,
		"ghcr.io/fairlead/fairlead:v0.1.0":             false,
	} {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}}}
		if got := s.hasImage(imagesOf(d)[0]); got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
}
