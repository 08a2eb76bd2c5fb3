package component

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// Which stage KWOK plays next for a pod, and when.
func TestStages(t *testing.T) {
	tests := map[string]struct {
		pod   func() *corev1.Pod
		stage string // none when empty
		delay time.Duration
	}{
		"new pod runs at once":                    {pod: with(scheduled), stage: "pod-run"},
		"running pod is left alone":               {pod: with(running, ready)},
		"ready never":                             {pod: with(running, annotated(ReadyAfter, "never"))},
		"ready after a while":                     {pod: with(running, annotated(ReadyAfter, "10s")), stage: "pod-ready-after", delay: 10 * time.Second},
		"a change of the pod begins nothing anew": {pod: with(running, annotated(ReadyAfter, "10s"), startedAgo(6*time.Second)), stage: "pod-ready-after", delay: 4 * time.Second},
		"held, not ready":                         {pod: with(running, annotated(ReadyAfter, "held"), startedAgo(time.Hour))},
		"held, no crash":                          {pod: with(running, ready, annotated(CrashAfter, "held"), startedAgo(time.Hour))},
		"held, not ready, but crashes":            {pod: with(running, annotated(ReadyAfter, "held"), annotated(CrashAfter, "5s")), stage: "pod-crash-after", delay: 5 * time.Second},
		"held, not gone":                          {pod: with(running, ready, annotated(TerminateAfter, "held"), deletedAgo(time.Minute))},
		"released, ready at once":                 {pod: with(running, annotated(ReadyAfter, "0s")), stage: "pod-ready-after"},
		"released, ready, crash held":             {pod: with(running, annotated(ReadyAfter, "0s"), annotated(CrashAfter, "held")), stage: "pod-ready-after"},
		"released, crash at once":                 {pod: with(running, ready, annotated(CrashAfter, "0s")), stage: "pod-crash-after"},
		"released, gone at once":                  {pod: with(running, ready, annotated(TerminateAfter, "0s"), deletedAgo(0)), stage: "pod-terminate-after"},
		"ready once":                              {pod: with(running, ready, annotated(ReadyAfter, "10s"))},
		"crash after a while":                     {pod: with(running, ready, annotated(CrashAfter, "1m30s")), stage: "pod-crash-after", delay: 90 * time.Second},
		"crash once":                              {pod: with(running, crashed, annotated(CrashAfter, "1s"))},
		"crash, though never ready":               {pod: with(running, annotated(ReadyAfter, "never"), annotated(CrashAfter, "5s")), stage: "pod-crash-after", delay: 5 * time.Second},
		"ready, then crash: ready first":          {pod: with(running, annotated(ReadyAfter, "2s"), annotated(CrashAfter, "5s")), stage: "pod-ready-after", delay: 2 * time.Second},
		"ready, then crash: crash next":           {pod: with(running, ready, annotated(ReadyAfter, "2s"), annotated(CrashAfter, "5s"), startedAgo(2*time.Second)), stage: "pod-crash-after", delay: 3 * time.Second},
		"crash before ready":                      {pod: with(running, annotated(ReadyAfter, "5s"), annotated(CrashAfter, "2s")), stage: "pod-crash-after", delay: 2 * time.Second},
		"crashed before ready stays so":           {pod: with(running, crashed, annotated(ReadyAfter, "5s"), annotated(CrashAfter, "2s"))},
		"pod of a Job completes":                  {pod: with(running, ready, ofJob), stage: "pod-complete"},
		"pod of a Job completes when ready":       {pod: with(running, ofJob, annotated(ReadyAfter, "3s")), stage: "pod-ready-after", delay: 3 * time.Second},
		"pod of a Job crashes instead":            {pod: with(running, ready, ofJob, annotated(CrashAfter, "3s")), stage: "pod-crash-after", delay: 3 * time.Second},
		"deleted pod goes at once":                {pod: with(running, ready, deletedAgo(0)), stage: "pod-terminate"},
		"deleted pod goes after a while":          {pod: with(running, ready, annotated(TerminateAfter, "30s"), deletedAgo(0)), stage: "pod-terminate-after", delay: 30 * time.Second},
		"deletion is counted from its request":    {pod: with(running, ready, annotated(TerminateAfter, "30s"), deletedAgo(10*time.Second)), stage: "pod-terminate-after", delay: 20 * time.Second},
		"deleted pod does not crash any more":     {pod: with(running, ready, annotated(CrashAfter, "1s"), deletedAgo(0)), stage: "pod-terminate"},
	}
	stages := loadStages(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// In a bubble of its own the clock stands still.
			synctest.Test(t, func(t *testing.T) { nextStage(t, stages, test.pod(), test.stage, test.delay) })
		})
	}
}

// The policy knows the annotations that the stages follow, and no field is misspelled.
func TestPodPolicy(t *testing.T) {
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict(PodPolicy, &policy); err != nil {
		t.Fatal(err)
	}
	for i, annotation := range []string{ReadyAfter, CrashAfter, TerminateAfter} {
		if check := policy.Spec.Validations[i]; !strings.Contains(check.Expression, annotation) || !strings.Contains(check.Message, annotation) {
			t.Errorf("check %d is %+v, want it about %s", i, check, annotation)
		}
	}
}

func nextStage(t *testing.T, stages lifecycle.Lifecycle, pod *corev1.Pod, stage string, delay time.Duration) {
	t.Helper()
	event := &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
	possible, err := stages.ListAllPossible(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if stage == "" {
		if len(possible) > 0 {
			t.Fatalf("%s is played, want none", possible[0].Name())
		}
		return
	}
	if len(possible) != 1 || possible[0].Name() != stage {
		t.Fatalf("%d stages fit, want %s alone", len(possible), stage)
	}
	got, _, err := possible[0].Delay(t.Context(), event, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// The time that a pod carries is cut to its second: a second more makes nothing happen too early.
	if delay > 0 {
		delay += time.Second
	}
	if got != delay {
		t.Errorf("played after %s, want %s", got, delay)
	}
}

func loadStages(t *testing.T) lifecycle.Lifecycle {
	t.Helper()
	dir := clusterdir.Dir(t.TempDir())
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	objects, err := config.Load(t.Context(), StagesFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	var ofPods []*internalversion.Stage
	for _, stage := range config.FilterWithType[*internalversion.Stage](objects) {
		if stage.Spec.ResourceRef.Kind == "Pod" {
			ofPods = append(ofPods, stage)
		}
	}
	stages, err := lifecycle.NewLifecycle(ofPods)
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// with is a pod like this, made when it is asked for.
func with(is ...func(*corev1.Pod)) func() *corev1.Pod {
	return func() *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop"},
			Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "main", Image: "cart"}}},
		}
		for _, change := range is {
			change(p)
		}
		return p
	}
}

func scheduled(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }

func running(p *corev1.Pod) {
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
	startedAgo(0)(p)
}

// ago is what the API server keeps of a time.
func ago(d time.Duration) *metav1.Time {
	return ptr.To(metav1.NewTime(time.Now().Add(-d).Truncate(time.Second)))
}

func startedAgo(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = ago(d) }
}

func ready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }

func crashed(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
}

func annotated(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, name, value) }
}

func ofJob(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "report"}}
}

func deletedAgo(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		const grace = 30
		p.DeletionGracePeriodSeconds, p.DeletionTimestamp = ptr.To[int64](grace), ago(d-grace*time.Second)
	}
}
