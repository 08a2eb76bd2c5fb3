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
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/test/cluster"
)

const (
	readyAfter     = "localkube.fairlead.dev/ready-after"
	crashAfter     = "localkube.fairlead.dev/crash-after"
	terminateAfter = "localkube.fairlead.dev/terminate-after"
)

// Pods live as their annotations ask.
func TestPodBehaviour(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	client, namespace := clientOf(t, c.Config()), c.Namespace(t)
	for name, test := range map[string]func(*testing.T, kubernetes.Interface, string){
		"never ready, and ready after a while": readiness,
		"crash in a Deployment":                crashInDeployment,
		"crash without a restart":              crashForGood,
		"ready, then crash":                    readyThenCrash,
		"a deleted pod stays for a while":      slowTermination,
		"a Job completes":                      jobCompletes,
		"a Job fails":                          jobFails,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, client, namespace)
		})
	}
}

func readiness(t *testing.T, client kubernetes.Interface, namespace string) {
	createDeployment(t, client, namespace, deployment("never", 1, map[string]string{readyAfter: "never"}))
	createDeployment(t, client, namespace, deployment("later", 1, map[string]string{readyAfter: "2s"}))
	awaitReady(t, client, namespace, "later")

	later, err := onlyPod(t, client, namespace, "later")
	if err != nil {
		t.Fatal(err)
	}
	if took := readyCondition(later).LastTransitionTime.Sub(later.Status.StartTime.Time); took < 2*time.Second || took > 6*time.Second {
		t.Errorf("ready %s after it ran, want 2 s", took)
	}
	// Made before the other one, which has become ready.
	never, err := onlyPod(t, client, namespace, "never")
	if err != nil {
		t.Fatal(err)
	}
	if never.Status.Phase != corev1.PodRunning || isReady(never) || never.Status.ContainerStatuses[0].Ready {
		t.Errorf("pod is %+v, want it running and never ready", never.Status)
	}
	d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "never", metav1.GetOptions{})
	if err != nil || d.Status.UnavailableReplicas != 1 {
		t.Errorf("Deployment is %+v, %v, want its pod unavailable", d.Status, err)
	}
}

func crashInDeployment(t *testing.T, client kubernetes.Interface, namespace string) {
	createDeployment(t, client, namespace, deployment("crash", 1, map[string]string{crashAfter: "4s"}))
	awaitReady(t, client, namespace, "crash")
	awaitCrash(t, client, namespace, "crash")
	eventually(t, 10*time.Second, "the Deployment is not available", func() error {
		d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "crash", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 0 {
			return fmt.Errorf("%d pods are ready", d.Status.ReadyReplicas)
		}
		return nil
	})
}

func awaitCrash(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	eventually(t, 15*time.Second, name+" crashes", func() error {
		pod, err := onlyPod(t, client, namespace, name)
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

func crashForGood(t *testing.T, client kubernetes.Interface, namespace string) {
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "once", Annotations: map[string]string{crashAfter: "1s"}}, Spec: spec}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 15*time.Second, "the pod fails", func() error {
		pod, err := client.CoreV1().Pods(namespace).Get(t.Context(), "once", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodFailed || isReady(pod) || pod.Status.ContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("it is %+v", pod.Status)
		}
		return nil
	})
}

// readyThenCrash asks for both, in either order: the earlier comes first.
func readyThenCrash(t *testing.T, client kubernetes.Interface, namespace string) {
	createDeployment(t, client, namespace, deployment("rise-and-fall", 1, map[string]string{readyAfter: "1s", crashAfter: "6s"}))
	createDeployment(t, client, namespace, deployment("fall", 1, map[string]string{readyAfter: "60s", crashAfter: "1s"}))
	awaitReady(t, client, namespace, "rise-and-fall")
	awaitCrash(t, client, namespace, "rise-and-fall")
	awaitCrash(t, client, namespace, "fall")
}

func slowTermination(t *testing.T, client kubernetes.Interface, namespace string) {
	pods := client.CoreV1().Pods(namespace)
	for name, annotations := range map[string]map[string]string{"slow": {terminateAfter: "3s"}, "quick": nil} {
		if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: podSpec()}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 15*time.Second, "both run", func() error {
		for _, name := range []string{"slow", "quick"} {
			if pod, err := pods.Get(t.Context(), name, metav1.GetOptions{}); err != nil || !isReady(pod) {
				return fmt.Errorf("%s is not ready: %w", name, err)
			}
		}
		return nil
	})
	begun := time.Now()
	for _, name := range []string{"slow", "quick"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// A change in between does not begin the time anew.
	eventually(t, 15*time.Second, "the quick one goes", func() error { return isGone(pods.Get(t.Context(), "quick", metav1.GetOptions{})) })
	if _, err := pods.Patch(t.Context(), "slow", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"terminating"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("the slow one went with the quick one: %v", err)
	}
	eventually(t, 15*time.Second, "the slow one goes", func() error { return isGone(pods.Get(t.Context(), "slow", metav1.GetOptions{})) })
	if took := time.Since(begun); took < 3*time.Second {
		t.Errorf("gone after %s, want 3 s at least", took)
	}
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

func jobCompletes(t *testing.T, client kubernetes.Interface, namespace string) {
	awaitJob(t, client, namespace, job("report", nil), batchv1.JobComplete)
}

func jobFails(t *testing.T, client kubernetes.Interface, namespace string) {
	awaitJob(t, client, namespace, job("broken-report", map[string]string{crashAfter: "1s"}), batchv1.JobFailed)
}

func awaitJob(t *testing.T, client kubernetes.Interface, namespace string, j *batchv1.Job, want batchv1.JobConditionType) {
	t.Helper()
	jobs := client.BatchV1().Jobs(namespace)
	if _, err := jobs.Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "Job "+j.Name+" is "+string(want), func() error {
		live, err := jobs.Get(t.Context(), j.Name, metav1.GetOptions{})
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
	for name, test := range map[string]struct{ annotation, value, refused string }{
		"a duration":                {annotation: readyAfter, value: "10s"},
		"a long duration":           {annotation: readyAfter, value: "1h30m"},
		"a fraction":                {annotation: crashAfter, value: "1.5s"},
		"milliseconds":              {annotation: terminateAfter, value: "250ms"},
		"never":                     {annotation: readyAfter, value: "never"},
		"held before it is ready":   {annotation: readyAfter, value: "held"},
		"held before it crashes":    {annotation: crashAfter, value: "held"},
		"held before it is gone":    {annotation: terminateAfter, value: "held"},
		"another's annotation":      {annotation: "example.com/ready-after", value: "5 parsecs"},
		"no duration":               {annotation: readyAfter, value: "5 parsecs", refused: readyAfter + " must be never, held, or a duration"},
		"no unit":                   {annotation: crashAfter, value: "10", refused: crashAfter + " must be held, or a duration"},
		"nothing":                   {annotation: terminateAfter, value: "", refused: terminateAfter + " must be held, or a duration"},
		"negative":                  {annotation: crashAfter, value: "-1s", refused: crashAfter},
		"never where it makes none": {annotation: crashAfter, value: "never", refused: crashAfter},
		"days":                      {annotation: terminateAfter, value: "1d", refused: terminateAfter},
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
		_, err := pods.Patch(t.Context(), "living", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"soon"}}}`, terminateAfter), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("annotated: %v, want it refused", err)
		}
	})
}
