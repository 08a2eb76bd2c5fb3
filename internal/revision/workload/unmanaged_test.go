package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// TestWhatStays has what the plan says of workloads that Fairlead does not restart, each with what to do about it.
func TestWhatStays(t *testing.T) {
	const (
		pod    = `Skipped stay Pod shop/debug from "default-v1-24-0", KindNotMoved: Pod is not restarted by Fairlead; `
		job    = `Skipped stay Job shop/report from "default-v1-24-0", KindNotMoved: Job is not restarted by Fairlead; `
		run    = `Skipped stay Job shop/report-29738000 from "default-v1-24-0", KindNotMoved: Job is not restarted by Fairlead; `
		set24  = `Skipped stay ReplicaSet shop/alone from "default-v1-24-0", KindNotMoved: ReplicaSet is not restarted by Fairlead; `
		orphan = `Skipped stay ReplicaSet shop/cart-5d4f8 from "default-v1-24-0", KindNotMoved: Deployment cart does not exist, and its ReplicaSet is not restarted by Fairlead; `
		db     = `Skipped stay StatefulSet shop/db from "default-v1-24-0", KindNotMoved: StatefulSet is not in batched.workloadKinds; `
	)
	shop, free := namespace("shop", rev(target)), namespace("shop", "")
	own := rev(old)
	for name, tc := range map[string]struct {
		parts []part
		want  string
	}{
		"bare pod":                           {[]part{shop, unmanagedWorkload("v1 Pod shop/debug", old, 1)}, pod + "delete it and create it again, and it starts on default-v1-26-0"},
		"bare pod with a label of its own":   {[]part{free, unmanagedWorkload("v1 Pod shop/debug", old, 1, own)}, pod + "delete it and create it again with label istio.io/rev=default-v1-26-0"},
		"bare pod that its namespace moves":  {[]part{shop, unmanagedWorkload("v1 Pod shop/debug", old, 1, own)}, pod + "delete it and create it again, and it starts on default-v1-26-0"},
		"bare pod without labels":            {[]part{free, unmanagedWorkload("v1 Pod shop/debug", old, 1)}, pod + "its labels select no revision, and new pods get no sidecar"},
		"Job":                                {[]part{shop, unmanagedWorkload("batch/v1 Job shop/report", old, 1)}, job + "it ends by itself, and the next Job starts on default-v1-26-0"},
		"Job with a label of its own":        {[]part{free, unmanagedWorkload("batch/v1 Job shop/report", old, 1, own)}, job + "it ends by itself; set label istio.io/rev of the pod template of the next Job to default-v1-26-0"},
		"run of a CronJob":                   {[]part{shop, unmanagedWorkload("batch/v1 Job shop/report-29738000", old, 1)}, run + "CronJob report starts its next run on default-v1-26-0"},
		"CronJob with a label of its own":    {[]part{free, unmanagedWorkload("batch/v1 Job shop/report-29738000", old, 1, own)}, run + "set label istio.io/rev of the pod template of CronJob report to default-v1-26-0"},
		"ReplicaSet":                         {[]part{shop, unmanagedWorkload("apps/v1 ReplicaSet shop/alone", old, 1)}, set24 + "delete its pods, and new ones start on default-v1-26-0"},
		"ReplicaSet with a label of its own": {[]part{free, unmanagedWorkload("apps/v1 ReplicaSet shop/alone", old, 1, own)}, set24 + "set label istio.io/rev of its pod template to default-v1-26-0, and delete its pods"},
		"ReplicaSet without its Deployment":  {[]part{shop, unmanagedWorkload("apps/v1 Deployment shop/cart", old, 1)}, orphan + "delete its pods, and new ones start on default-v1-26-0"},
		"StatefulSet":                        {[]part{shop, set(kindStatefulSet, "shop/db", runs(old, 2))}, db + "its next restart picks up the revision"},
		"StatefulSet with a label of its own": {
			[]part{free, set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(own))}, db + "set label istio.io/rev of its pod template to default-v1-26-0",
		},
		"StatefulSet by OnDelete": {[]part{shop, set(kindStatefulSet, "shop/db", runs(old, 2), onDeleteSet)}, db + "delete its pods, and new ones start on default-v1-26-0"},
		"StatefulSet with a tag of its own": {
			[]part{tag("prod", "Istio/default", target), free, set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(rev("prod")))},
			db + "its next restart picks up the revision",
		},
		"StatefulSet that its own tag pins": {
			[]part{tag("stable", "IstioRevision/"+old, old), free, set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(rev("stable")))},
			db + "label istio.io/rev of its pods selects IstioRevisionTag stable, which is fixed to IstioRevision default-v1-24-0",
		},
		"StatefulSet that its namespace pins": {
			[]part{tag("stable", "IstioRevision/"+old, old), namespace("shop", rev("stable")), set(kindStatefulSet, "shop/db", runs(old, 2))},
			db + "its namespace selects IstioRevisionTag stable, which is fixed to IstioRevision default-v1-24-0",
		},
		"StatefulSet with a label that names nothing": {
			[]part{free, set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(rev("nosuch")))},
			db + "label istio.io/rev names nosuch, which is neither a revision nor a tag; correct the label",
		},
		"StatefulSet that names its revision, with injection off": {
			[]part{shop, set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(v1.LabelSidecarInject+"=false"), podAnnotations(rev(old)))},
			db + "injection is off, so a restart does not move it; change the revision where its pods or their Gateway name it",
		},
		"Deployment of a Gateway": {
			[]part{shop, deploy("shop/web", runs(old, 2), podAnnotations(rev(old)),
				podLabels(v1.LabelSidecarInject+"=false,gateway.networking.k8s.io/gateway-name=front"))},
			`Skipped stay Deployment shop/web from "default-v1-24-0", NamesRevision: its pod template names default-v1-24-0 by annotation istio.io/rev, ` +
				`and a restart does not move it; set label istio.io/rev of Gateway shop/front to default-v1-26-0`,
		},
		"Deployment that names its revision by an annotation": {
			[]part{shop, deploy("shop/web", runs(old, 2), podAnnotations(rev(old)), podLabels(v1.LabelSidecarInject+"=false"))},
			`Skipped stay Deployment shop/web from "default-v1-24-0", NamesRevision: its pod template names default-v1-24-0 by annotation istio.io/rev, ` +
				`with injection off, and a restart does not move it; set annotation istio.io/rev to default-v1-26-0`,
		},
		"Deployment that names its revision by a label": {
			[]part{shop, deploy("shop/web", runs(old, 2), podLabels(v1.LabelSidecarInject+"=false,"+rev(old)))},
			`Skipped stay Deployment shop/web from "default-v1-24-0", NamesRevision: its pod template names default-v1-24-0 by label istio.io/rev, ` +
				`with injection off, and a restart does not move it; set label istio.io/rev to default-v1-26-0`,
		},
		"Deployment with injection off": {
			[]part{shop, deploy("shop/web", runs(old, 2), podLabels(v1.LabelSidecarInject+"=false"))},
			`Skipped stay Deployment shop/web from "default-v1-24-0", ` + injectionOff,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want}, reported(Plan(observed(tc.parts...), epoch))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
	// What runs on the target, or is of another Istio, is not listed.
	if got := reported(Plan(observed(shop, unmanagedWorkload("batch/v1 Job shop/report", target, 1),
		unmanagedWorkload("v1 Pod web/debug", foreign24, 1)), epoch)); len(got) > 0 {
		t.Errorf("listed: %v", got)
	}
}

// cronJob is one between its runs: no Job of it exists.
func cronJob(name, labels string) part {
	in, name, _ := strings.Cut(name, "/")
	return func(o *Observed) {
		if o.Inventory.CronJobs == nil {
			o.Inventory.CronJobs = map[types.NamespacedName]map[string]string{}
		}
		o.Inventory.CronJobs[types.NamespacedName{Namespace: in, Name: name}] = labelled(labels)
	}
}

// TestCronJobsBetweenRuns has what the plan says of CronJobs whose next run would be on an old revision.
func TestCronJobsBetweenRuns(t *testing.T) {
	const stays = `Skipped stay CronJob shop/report from "default-v1-24-0", KindNotMoved: CronJob is not restarted by Fairlead; `
	const relabels = `Pending relabel Namespace shop from "default-v1-24-0", NamesOldRevision: selected by label istio.io/rev`
	const skips = `Skipped stay Namespace shop from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set; its label and its workloads are left alone`
	for name, tc := range map[string]struct {
		parts []part
		want  []string
	}{
		"with a label of its own":      {[]part{namespace("shop", ""), cronJob("shop/report", rev(old))}, []string{stays + "set label istio.io/rev of its pod template to default-v1-26-0"}},
		"by its namespace":             {[]part{namespace("shop", rev(old)), cronJob("shop/report", "")}, []string{relabels, stays + "its next run starts on default-v1-26-0"}},
		"by its namespace, left alone": {[]part{optOut("shop", rev(old), "true"), cronJob("shop/report", "")}, []string{skips, stays + "its namespace is left alone by annotation sailoperator.io/skip-migration"}},
		"overruled by its namespace":   {[]part{namespace("shop", rev(target)), cronJob("shop/report", rev(old))}, nil},
		"on the target":                {[]part{namespace("shop", ""), cronJob("shop/report", rev(target))}, nil},
		"through a tag that has moved": {[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod")), cronJob("shop/report", "")}, nil},
		"without injection":            {[]part{namespace("shop", rev(target)), cronJob("shop/report", rev(old)+","+v1.LabelSidecarInject+"=false")}, nil},
		"outside the mesh":             {[]part{namespace("shop", ""), cronJob("shop/report", "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reported(Plan(observed(tc.parts...), epoch))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCronJobOf(t *testing.T) {
	for job, want := range map[string]string{
		"report-29738000": "report", "a-b-29738000": "a-b", "report": "", "report-1": "", "dump-20261118": "", "x-99999999": "", "-29738000": "",
	} {
		if got := cronJobOf(job); got != want {
			t.Errorf("%s: %q, want %q", job, got, want)
		}
	}
}
