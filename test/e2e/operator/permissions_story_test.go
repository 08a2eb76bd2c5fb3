package operator_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/revision"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// everything makes the charts install one of each kind that they know.
var everything = v1.Values{
	"global":       map[string]any{"networkPolicy": map[string]any{"enabled": true}},
	"experimental": map[string]any{"stableValidationPolicy": true},
	"autoscaleMin": int64(2),
}

// story is all that an operator does: it installs its CRDs, takes the lead, does what its passages do, and answers who may see
// its metrics. It ends early when the operator is refused anything, and otherwise not before it has used the permissions that it needs.
func (i *installation) story(t testing.TB, needed map[permission]bool) (*recorder, error) {
	t.Helper()
	i.forget(t)
	line := startRecorder(t, i.config)
	operator := i.start(t, line.kubeconfigFor(t, i.token(t, "fairlead")))
	defer operator.stop(t)

	metrics := operator.address(t, "metrics")
	scraped := func(token string, want int) func(context.Context) error {
		return func(ctx context.Context) error {
			code, body, err := scrape(ctx, "https://"+metrics, token)
			if err != nil || code != want || strings.Contains(body, "fairlead_build_info") != (want == http.StatusOK) {
				return fmt.Errorf("status %d: %.200s: %w", code, body, err)
			}
			return nil
		}
	}
	scraper := i.token(t, "scraper")
	var steps []storyStep
	if i.runs(revision.Name) {
		steps = append(steps, i.controlPlaneSteps()...)
	}
	if i.runs(rollout.Name) {
		steps = append(steps, i.environmentSteps()...)
	}
	if i.runs(model.Passage) {
		steps = append(steps, i.takeoverSteps(t)...)
	}
	if i.runs(meshservice.Name) {
		steps = append(steps, i.meshSteps(t)...)
	}
	steps = append(steps,
		storyStep{"scrape its metrics with a token that may", scraped(scraper, http.StatusOK)},
		storyStep{"scrape them with another token", scraped(i.token(t, "default"), http.StatusForbidden)},
		storyStep{"scrape them without a token", scraped("", http.StatusUnauthorized)},
		storyStep{"see its permissions used", func(context.Context) error {
			if left := line.unused(needed); len(left) > 0 {
				return fmt.Errorf("granted and not used: %q", sorted(left))
			}
			return nil
		}},
	)
	for _, step := range steps {
		if err := step.take(t, i, operator, line); err != nil {
			return line, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return line, nil
}

// controlPlaneSteps install a control plane and its tag, move on to the next version, remove the old one, report and record events.
func (i *installation) controlPlaneSteps() []storyStep {
	istio := revisionBased(makeIstio("default", "v1.31.0"))
	istio.Spec.Namespace = i.namespace
	istio.Spec.Values = everything
	istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To[int64](0)
	istio.Spec.UpdateStrategy.WorkloadMigration = &v1.WorkloadMigrationConfig{
		Strategy: v1.WorkloadMigrationStrategyBatched,
		Batched:  &v1.BatchedMigrationConfig{WorkloadKinds: []v1.WorkloadKind{v1.WorkloadKindStatefulSet, v1.WorkloadKindDeployment, v1.WorkloadKindDaemonSet}},
	}
	nowhere := makeIstio("nowhere", "v1.31.0")
	nowhere.Spec.Namespace = i.namespace + "-missing"
	user := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.namespace + "-user"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	pods := func(revision string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent", v1.LabelRevision: revision}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
		}
	}
	agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: user.Name, Name: "agent"}}
	store := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: user.Name, Name: "store"}}
	tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	asksForTag := func(asks bool) func(context.Context) error {
		return func(ctx context.Context) error {
			patch := fmt.Appendf(nil, `{"spec":{"updateStrategy":{"defaultTag":%t}}}`, asks)
			return i.Patch(ctx, istio, client.RawPatch(types.MergePatchType, patch))
		}
	}
	return []storyStep{
		{"create an Istio", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, istio))
		}},
		{"see its control plane run", func(ctx context.Context) error {
			return i.serve(ctx, "default-v1-31-0", istio)
		}},
		{"ask for a tag", asksForTag(true)},
		{"see where it points", func(ctx context.Context) error { return i.points(ctx, "default", "default-v1-31-0") }},
		{"install control planes that run elsewhere", i.installRemoteRevisions},
		{"upgrade one of them", i.upgradeRemoteRevision},
		{"remove them", i.removeRemoteRevisions},
		{"use it", func(ctx context.Context) error {
			_, err := controllerutil.CreateOrPatch(ctx, i.Client, user, func() error {
				user.Labels = map[string]string{v1.LabelRevision: "default-v1-31-0"}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = controllerutil.CreateOrPatch(ctx, i.Client, agent, func() error {
				agent.Spec.Selector, agent.Spec.Template = selector, pods("default-v1-31-0")
				return nil
			})
			if err != nil {
				return err
			}
			_, err = controllerutil.CreateOrPatch(ctx, i.Client, store, func() error {
				store.Spec.Selector, store.Spec.Template = selector, pods("default-v1-31-0")
				return nil
			})
			return err
		}},
		{"ask for another version", func(ctx context.Context) error {
			istio.Spec.Version = "v1.31.1"
			return i.Patch(ctx, istio, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"v1.31.1"}}`)))
		}},
		{"see the new control plane run", func(ctx context.Context) error {
			return i.serve(ctx, "default-v1-31-1", istio)
		}},
		{"see the tag move", func(ctx context.Context) error { return i.points(ctx, "default", "default-v1-31-1") }},
		{"let it inject", func(ctx context.Context) error { return i.inject(ctx, "default-v1-31-1") }},
		{"see its user move", func(ctx context.Context) error {
			if err := i.Get(ctx, client.ObjectKeyFromObject(user), user); err != nil {
				return err
			}
			if uses := user.Labels[v1.LabelRevision]; uses != "default-v1-31-1" {
				return fmt.Errorf("namespace %s uses %s", user.Name, uses)
			}
			if err := i.Get(ctx, client.ObjectKeyFromObject(agent), agent); err != nil {
				return err
			}
			if uses := agent.Spec.Template.Labels[v1.LabelRevision]; uses != "default-v1-31-1" {
				return fmt.Errorf("DaemonSet %s uses %s", agent.Name, uses)
			}
			if err := i.Get(ctx, client.ObjectKeyFromObject(store), store); err != nil {
				return err
			}
			if uses := store.Spec.Template.Labels[v1.LabelRevision]; uses != "default-v1-31-1" {
				return fmt.Errorf("StatefulSet %s uses %s", store.Name, uses)
			}
			return nil
		}},
		{"see the old revision go", func(ctx context.Context) error {
			return isGone(ctx, i, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-0"}})
		}},
		{"see an event", func(ctx context.Context) error {
			return eventReported(ctx, i, istio, "RevisionCreated")
		}},
		{"create an Istio in a namespace that does not exist", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, nowhere))
		}},
		// The second time that the same thing happens, it is not told by a new event but by a change of the first.
		{"see the event of its revision told again", func(ctx context.Context) error {
			missing := eventRepeated(ctx, i, nowhere, "RevisionCreated")
			if missing == nil {
				return nil
			}
			// Events are told again only about the same version of the Istio: several times, before its status changes.
			for range 20 {
				revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: nowhere.Name}}
				if err := client.IgnoreNotFound(i.Delete(ctx, revision)); err != nil {
					return err
				}
			}
			return missing
		}},
		{"see tags stored in the newer version", storedAnew(i, tags)},
		{"ask for no tag", asksForTag(false)},
		{"see it go", func(ctx context.Context) error { return isGone(ctx, i, tag) }},
		{"remove all", func(ctx context.Context) error {
			err := errors.Join(client.IgnoreNotFound(i.Delete(ctx, istio)), isGone(ctx, i, istio))
			if err != nil {
				return err
			}
			// As the garbage collector would, which takes half a minute to hear of a new kind.
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-1"}}
			return errors.Join(client.IgnoreNotFound(i.Delete(ctx, revision)), isGone(ctx, i, revision))
		}},
	}
}

// environmentSteps roll an environment out, twice.
func (i *installation) environmentSteps() []storyStep {
	return []storyStep{
		{"see an environment stored in the newer version", storedAnew(i, environments)},
		{"see its first generation serve", func(ctx context.Context) error { return i.rolledOut(ctx, 1) }},
		{"ask for another image", i.rollOn},
		{"see the second generation serve", func(ctx context.Context) error { return i.rolledOut(ctx, 2) }},
		{"see the certificate of the first go", i.noCertificate},
	}
}

// storyStep is one of a story, tried until it works.
type storyStep struct {
	what string
	try  func(context.Context) error
}

// take ends early when the operator has ended, or was refused anything, of which its log must tell, or the
// status of what needs it.
func (s storyStep) take(t testing.TB, i *installation, operator *process, line *recorder) error {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("%s: %.1fs", s.what, time.Since(began).Seconds()) }()
	var ended bool
	err := wait.Try(t.Context(), func(ctx context.Context) error {
		if ended = operator.hasEnded(); ended || len(line.made(refused)) > 0 {
			return nil
		}
		return s.try(ctx)
	})
	if no := line.made(refused); len(no) > 0 {
		reported := wait.Try(t.Context(), func(ctx context.Context) error {
			if strings.Contains(operator.Log.Since(0), "forbidden") || i.isToldByStatus(ctx) {
				return nil
			}
			return errors.New("the operator does not tell")
		})
		return errors.Join(fmt.Errorf("the operator was refused: %v", no[0]), reported)
	}
	if ended {
		return fmt.Errorf("the operator ended with %d", operator.ExitCode())
	}
	return err
}

// serve says of istiod what nobody else would here, where nothing runs, and waits until the Istio is healthy with it.
func (i *installation) serve(ctx context.Context, revision string, istio *v1.Istio) error {
	var d appsv1.Deployment
	if err := i.Get(ctx, client.ObjectKey{Namespace: i.namespace, Name: "istiod-" + revision}, &d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration != d.Generation {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		}
		if err := i.Status().Update(ctx, &d); err != nil {
			return err
		}
	}
	return isReported(ctx, i, istio.Name, v1.StateHealthy, istio)
}

func (i *installation) points(ctx context.Context, tag, revision string) error {
	var found v1.IstioRevisionTag
	if err := i.Get(ctx, client.ObjectKey{Name: tag}, &found); err != nil {
		return err
	}
	if found.Status.IstioRevision != revision {
		return fmt.Errorf("tag %s points to %q: %+v", tag, found.Status.IstioRevision, found.Status.Conditions)
	}
	return nil
}

func isGone(ctx context.Context, c client.Reader, object client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%s is still there", object.GetName()))
}

func eventRepeated(ctx context.Context, c client.Reader, istio *v1.Istio, reason string) error {
	var events eventsv1.EventList
	if err := c.List(ctx, &events, client.InNamespace("default")); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.UID == istio.UID && e.Reason == reason && e.Series != nil {
			return nil
		}
	}
	return fmt.Errorf("no event %s has become a series", reason)
}

// scrape reads metrics without checking the certificate, which the operator signs itself: it is the token that counts.
func scrape(ctx context.Context, server, token string) (int, string, error) {
	return scrapePath(ctx, server+"/metrics", token)
}

func scrapePath(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// allowScraper makes a ServiceAccount that the chart's role for scraping is bound to.
func (i *installation) allowScraper(t testing.TB) {
	t.Helper()
	create(t, i.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "scraper", Namespace: i.namespace}})
	create(t, i.Client, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: i.namespace + ":scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: i.namespace + ":fairlead-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "scraper", Namespace: i.namespace}},
	})
}
