//go:build linux

package localkube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/history"
)

// Pods live as their annotations ask.
func TestPodBehaviour(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	w := podWorld{Cluster: c, client: clientOf(t, c.Config()), namespace: c.Namespace(t)}
	awaitServiceAccount(t, w.client, w.namespace)
	watched, err := client.NewWithWatch(c.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.history = history.Follow[*corev1.Pod](t, watched, &corev1.PodList{}, client.InNamespace(w.namespace))
	for name, test := range map[string]func(*testing.T, podWorld){
		"never ready":                     neverReady,
		"ready after a while":             readyAfterAWhile,
		"ready when it is released":       readyWhenReleased,
		"crash when it is released":       crashWhenReleased,
		"crash, though not yet ready":     crashBeforeReady,
		"crash without a restart":         crashForGood,
		"gone when it is released":        goneWhenReleased,
		"a Job completes":                 jobCompletes,
		"a Job fails when it is released": jobFails,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// podWorld is a namespace, and every version of its pods.
type podWorld struct {
	*cluster.Cluster
	client    kubernetes.Interface
	namespace string
	history   *history.History[*corev1.Pod]
}

// neverBefore checks that no version of a pod was as described while the annotation held it.
func (w podWorld) neverBefore(t *testing.T, app, annotation, what string, is func(history.Event[*corev1.Pod]) bool) {
	t.Helper()
	var seen bool
	for _, event := range w.history.Events(t) {
		if event.Object.Labels["app"] != app || !is(event) {
			continue
		}
		seen = true
		if value := event.Object.Annotations[annotation]; value == cluster.Held {
			t.Errorf("pod %s is %s, though it is held", event.Object.Name, what)
		}
	}
	if !seen {
		t.Errorf("no pod of %s was seen %s", app, what)
	}
}

func (w podWorld) release(t *testing.T, app, annotation string) {
	t.Helper()
	w.Release(t, w.namespace, annotation, map[string]string{"app": app})
}

func (w podWorld) deploy(t *testing.T, app string, annotations map[string]string) {
	t.Helper()
	createDeployment(t, w.client, w.namespace, deployment(app, 1, annotations))
}

// awaitRunning has the only pod of a Deployment run, and returns it.
func (w podWorld) awaitRunning(t *testing.T, app string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, app+" runs", func() (err error) {
		if pod, err = onlyPod(t, w.client, w.namespace, app); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %+v", pod.Status)
		}
		return nil
	})
	return pod
}

// othersAreServed shows that KWOK has seen what was asked of it before: it sees pods in the order in which they are written.
func (w podWorld) othersAreServed(t *testing.T, app string) {
	t.Helper()
	w.deploy(t, app+"-later", nil)
	awaitReady(t, w.client, w.namespace, app+"-later")
}

func isReadyNow(e history.Event[*corev1.Pod]) bool { return isReady(e.Object) }

func hasCrashed(e history.Event[*corev1.Pod]) bool {
	for _, s := range e.Object.Status.ContainerStatuses {
		if s.State.Waiting != nil || s.State.Terminated != nil {
			return true
		}
	}
	return false
}

func isDeleted(e history.Event[*corev1.Pod]) bool { return e.Type == watch.Deleted }

func neverReady(t *testing.T, w podWorld) {
	w.deploy(t, "never", map[string]string{cluster.ReadyAfter: cluster.Never})
	w.awaitRunning(t, "never")
	w.othersAreServed(t, "never")
	never := w.awaitRunning(t, "never")
	if isReady(never) || never.Status.ContainerStatuses[0].Ready {
		t.Errorf("pod is %+v, want it running and never ready", never.Status)
	}
	eventually(t, "its Deployment says so", func() error {
		d, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "never", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.UnavailableReplicas != 1 {
			return fmt.Errorf("Deployment is %+v", d.Status)
		}
		return nil
	})
}

func readyAfterAWhile(t *testing.T, w podWorld) {
	w.deploy(t, "later", map[string]string{cluster.ReadyAfter: "1s"})
	awaitReady(t, w.client, w.namespace, "later")
	later := w.awaitRunning(t, "later")
	if took := readyCondition(later).LastTransitionTime.Sub(later.Status.StartTime.Time); took < time.Second {
		t.Errorf("ready %s after it ran, want 1 s at least", took)
	}
}

func readyWhenReleased(t *testing.T, w podWorld) {
	w.deploy(t, "ready", map[string]string{cluster.ReadyAfter: cluster.Held})
	w.awaitRunning(t, "ready")
	w.othersAreServed(t, "ready")
	if isReady(w.awaitRunning(t, "ready")) {
		t.Error("it is ready, though it is held")
	}
	w.release(t, "ready", cluster.ReadyAfter)
	awaitReady(t, w.client, w.namespace, "ready")
	w.neverBefore(t, "ready", cluster.ReadyAfter, "ready", isReadyNow)
}

func crashWhenReleased(t *testing.T, w podWorld) {
	w.deploy(t, "crash", map[string]string{cluster.CrashAfter: cluster.Held})
	awaitReady(t, w.client, w.namespace, "crash")
	w.othersAreServed(t, "crash")
	w.release(t, "crash", cluster.CrashAfter)
	awaitCrash(t, w, "crash")
	w.neverBefore(t, "crash", cluster.CrashAfter, "crashed", hasCrashed)
	eventually(t, "the Deployment is not available", func() error {
		d, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "crash", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 0 {
			return fmt.Errorf("%d pods are ready", d.Status.ReadyReplicas)
		}
		return nil
	})
}

func crashBeforeReady(t *testing.T, w podWorld) {
	w.deploy(t, "fall", map[string]string{cluster.ReadyAfter: cluster.Held, cluster.CrashAfter: cluster.Held})
	w.awaitRunning(t, "fall")
	w.release(t, "fall", cluster.CrashAfter)
	awaitCrash(t, w, "fall")
	w.neverBefore(t, "fall", cluster.CrashAfter, "crashed", hasCrashed)
	// Crashed before it was ready, it stays so.
	w.release(t, "fall", cluster.ReadyAfter)
	eventually(t, "it is released", func() error {
		pod, err := onlyPod(t, w.client, w.namespace, "fall")
		if err != nil {
			return err
		}
		if value := pod.Annotations[cluster.ReadyAfter]; value == cluster.Held {
			return errors.New("it is held")
		}
		return nil
	})
	w.othersAreServed(t, "fall")
	for _, event := range w.history.Events(t) {
		if event.Object.Labels["app"] == "fall" && isReady(event.Object) {
			t.Errorf("it was ready: %+v", event.Object.Status)
		}
	}
}

func awaitCrash(t *testing.T, w podWorld, name string) {
	t.Helper()
	eventually(t, name+" crashes", func() error {
		pod, err := onlyPod(t, w.client, w.namespace, name)
		if err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) == 0 {
			return errors.New("it has not started")
		}
		s := pod.Status.ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || isReady(pod) {
			return fmt.Errorf("it is %+v, ready: %t", s, isReady(pod))
		}
		if s.LastTerminationState.Terminated.ExitCode != 1 || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it ended as %+v in phase %s", s.LastTerminationState.Terminated, pod.Status.Phase)
		}
		return nil
	})
}

func (w podWorld) createPod(t *testing.T, name string, policy corev1.RestartPolicy, annotations map[string]string) {
	t.Helper()
	spec := podSpec()
	spec.RestartPolicy = policy
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}, Annotations: annotations}, Spec: spec}
	if _, err := w.client.CoreV1().Pods(w.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func crashForGood(t *testing.T, w podWorld) {
	w.createPod(t, "once", corev1.RestartPolicyNever, map[string]string{cluster.CrashAfter: cluster.Held})
	w.awaitRunning(t, "once")
	w.release(t, "once", cluster.CrashAfter)
	eventually(t, "the pod fails", func() error {
		pod, err := onlyPod(t, w.client, w.namespace, "once")
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodFailed || isReady(pod) || pod.Status.ContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("it is %+v", pod.Status)
		}
		return nil
	})
	w.neverBefore(t, "once", cluster.CrashAfter, "crashed", hasCrashed)
}

func goneWhenReleased(t *testing.T, w podWorld) {
	pods := w.client.CoreV1().Pods(w.namespace)
	annotations := map[string]map[string]string{"slow": {cluster.TerminateAfter: cluster.Held}, "quick": nil}
	for name := range annotations {
		w.createPod(t, name, corev1.RestartPolicyAlways, annotations[name])
		w.awaitRunning(t, name)
	}
	for _, name := range []string{"slow", "quick"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the quick one goes", func() error { return isGone(pods.Get(t.Context(), "quick", metav1.GetOptions{})) })
	// A change in between changes nothing.
	if _, err := pods.Patch(t.Context(), "slow", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"terminating"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("the slow one went with the quick one: %v", err)
	}
	w.othersAreServed(t, "slow")
	w.release(t, "slow", cluster.TerminateAfter)
	eventually(t, "the slow one goes", func() error { return isGone(pods.Get(t.Context(), "slow", metav1.GetOptions{})) })
	w.neverBefore(t, "slow", cluster.TerminateAfter, "gone", isDeleted)
}

func job(name string, annotations map[string]string) *batchv1.Job {
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: spec},
		},
	}
}

func jobCompletes(t *testing.T, w podWorld) {
	w.createJob(t, job("report", nil))
	w.awaitJob(t, "report", batchv1.JobComplete)
}

func jobFails(t *testing.T, w podWorld) {
	w.createJob(t, job("broken-report", map[string]string{cluster.CrashAfter: cluster.Held}))
	// A pod that may still crash does not complete.
	w.createJob(t, job("later-report", nil))
	w.awaitJob(t, "later-report", batchv1.JobComplete)
	w.Release(t, w.namespace, cluster.CrashAfter, map[string]string{batchv1.JobNameLabel: "broken-report"})
	w.awaitJob(t, "broken-report", batchv1.JobFailed)
}

func (w podWorld) createJob(t *testing.T, j *batchv1.Job) {
	t.Helper()
	if _, err := w.client.BatchV1().Jobs(w.namespace).Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w podWorld) awaitJob(t *testing.T, name string, want batchv1.JobConditionType) {
	t.Helper()
	eventually(t, "Job "+name+" is "+string(want), func() error {
		live, err := w.client.BatchV1().Jobs(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range live.Status.Conditions {
			if c.Type == want && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", live.Status.Conditions)
	})
}

// What KWOK could not follow is refused, wherever pods come from.
func TestPodAnnotationsAreChecked(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	client, namespace := clientOf(t, c.Config()), c.Namespace(t)
	awaitServiceAccount(t, client, namespace)
	for name, test := range map[string]struct{ annotation, value, refused string }{
		"a duration":                {annotation: cluster.ReadyAfter, value: "10s"},
		"a long duration":           {annotation: cluster.ReadyAfter, value: "1h30m"},
		"a fraction":                {annotation: cluster.CrashAfter, value: "1.5s"},
		"milliseconds":              {annotation: cluster.TerminateAfter, value: "250ms"},
		"never":                     {annotation: cluster.ReadyAfter, value: cluster.Never},
		"held before it is ready":   {annotation: cluster.ReadyAfter, value: cluster.Held},
		"held before it crashes":    {annotation: cluster.CrashAfter, value: cluster.Held},
		"held before it is gone":    {annotation: cluster.TerminateAfter, value: cluster.Held},
		"another's annotation":      {annotation: "example.com/ready-after", value: "5 parsecs"},
		"no duration":               {annotation: cluster.ReadyAfter, value: "5 parsecs", refused: cluster.ReadyAfter + " must be never, held, or a duration"},
		"no unit":                   {annotation: cluster.CrashAfter, value: "10", refused: cluster.CrashAfter + " must be held, or a duration"},
		"nothing":                   {annotation: cluster.TerminateAfter, value: "", refused: cluster.TerminateAfter + " must be held, or a duration"},
		"negative":                  {annotation: cluster.CrashAfter, value: "-1s", refused: cluster.CrashAfter},
		"never where it makes none": {annotation: cluster.CrashAfter, value: cluster.Never, refused: cluster.CrashAfter},
		"days":                      {annotation: cluster.TerminateAfter, value: "1d", refused: cluster.TerminateAfter},
		"a slip of the pen":         {annotation: "localkube.fairlead.dev/readyafter", value: "10s", refused: "ready-after, crash-after and terminate-after"},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{test.annotation: test.value}
			dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			meta := metav1.ObjectMeta{Name: "checked"}
			template := deployment("checked", 1, annotations).Spec
			errs := map[string]error{}
			_, errs["Pod"] = client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "checked", Annotations: annotations}, Spec: podSpec()}, dryRun)
			_, errs["Deployment"] = client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: template}, dryRun)
			_, errs["StatefulSet"] = client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: template.Selector, Template: template.Template}}, dryRun)
			_, errs["DaemonSet"] = client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: template.Selector, Template: template.Template}}, dryRun)
			_, errs["Job"] = client.BatchV1().Jobs(namespace).Create(t.Context(), job("checked", annotations), dryRun)
			for kind, err := range errs {
				switch {
				case test.refused == "" && err != nil:
					t.Errorf("%s is refused: %v", kind, err)
				case test.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.refused)):
					t.Errorf("%s: %v, want it refused with %q", kind, err, test.refused)
				}
			}
		})
	}
	t.Run("on a pod that lives", func(t *testing.T) {
		pods := client.CoreV1().Pods(namespace)
		if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "living"}, Spec: podSpec()}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := pods.Patch(t.Context(), "living", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"soon"}}}`, cluster.TerminateAfter), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("annotated: %v, want it refused", err)
		}
	})
}
