package injection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

const (
	// validity is how long a revision that injects is taken to inject, unless its webhooks change.
	validity = 5 * time.Minute
	// A check that failed is repeated after minRetry, then after twice as long each time up to maxRetry. A change of webhooks
	// repeats it sooner.
	minRetry = 2 * time.Second
	maxRetry = 30 * time.Second
	// minInterval is how long any result is kept: webhooks may change all the time.
	minInterval = time.Second
	// timeout of one dry run. API servers wait for a webhook of Istio's charts for 10 seconds.
	timeout = 30 * time.Second
	// maxNamespaces is how many namespaces are tried.
	maxNamespaces = 3
)

// Webhooks are the kind of object by which API servers find injectors.
func Webhooks() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	return m
}

// Request is what to check for an Istio.
type Request struct {
	// Istio is its name, and Revision the one whose sidecar pods have to get.
	Istio, Revision string
	// Ways are those by which pods select it. Namespaces has, for each way, where pods select it so, the best first.
	Ways       []Way
	Namespaces map[Way][]string
}

// Result is what a check of one way has shown.
type Result struct {
	Verdict Verdict
	// Answer is what was wrong, in words.
	Answer string
	// RetryAt is when a check that failed is repeated.
	RetryAt time.Time
}

// Checker remembers results: checks of one migration take a handful of requests.
type Checker struct {
	client   client.Client
	webhooks client.Reader
	now      func() time.Time

	mu    sync.Mutex
	known map[key]record
}

type key struct {
	istio, revision string
	way             Way
}

// record is the last result of a check.
type record struct {
	Result
	at       time.Time
	failures int
	// webhooks are the versions of the webhooks of the revision, at the time of the check.
	webhooks string
}

// NewChecker makes a Checker. The client creates pods as dry runs; webhooks reads the metadata of MutatingWebhookConfigurations.
func NewChecker(c client.Client, webhooks client.Reader, now func() time.Time) *Checker {
	return &Checker{client: c, webhooks: webhooks, now: now, known: map[key]record{}}
}

// Check has a result for each way, from memory where that still holds.
func (c *Checker) Check(ctx context.Context, request Request) (map[Way]Result, error) {
	webhooks, err := c.webhookVersions(ctx, request.Revision)
	if err != nil {
		return nil, err
	}
	results := map[Way]Result{}
	var due []Way
	for _, way := range request.Ways {
		if r, found := c.recall(request.key(way), webhooks); found {
			results[way] = r
		} else {
			due = append(due, way)
		}
	}
	var group errgroup.Group
	checked := make([]Result, len(due))
	for i, way := range due {
		group.Go(func() error {
			checked[i].Verdict, checked[i].Answer = c.check(ctx, way, request)
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, way := range due {
		if checked[i].Verdict != Injects {
			ctrl.LoggerFrom(ctx).Info("a dry run shows no sidecar of the revision", "revision", request.Revision, "pods", way.String(), "why", checked[i].Answer)
		}
		results[way] = c.remember(request.key(way), checked[i], webhooks)
	}
	return results, nil
}

// Forget forgets the results for an Istio.
func (c *Checker) Forget(istio string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(k key, _ record) bool { return k.istio == istio })
}

func (r Request) key(way Way) key { return key{r.Istio, r.Revision, way} }

func (c *Checker) recall(k key, webhooks string) (Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.known[k]
	if !found {
		return Result{}, false
	}
	until := known.RetryAt
	if known.Verdict == Injects {
		until = known.at.Add(validity)
	}
	if known.webhooks != webhooks {
		until = known.at.Add(minInterval)
	}
	if !c.now().Before(until) {
		return Result{}, false
	}
	if known.Verdict != Injects {
		known.RetryAt = until
	}
	return known.Result, true
}

func (c *Checker) remember(k key, result Result, webhooks string) Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	known := record{Result: result, at: now, webhooks: webhooks}
	if result.Verdict != Injects {
		known.failures = c.known[k].failures + 1
		known.RetryAt = now.Add(retryDelay(known.failures))
	}
	// What was shown for a former target of the Istio does not matter any more.
	maps.DeleteFunc(c.known, func(other key, _ record) bool { return other.istio == k.istio && other.revision != k.revision })
	c.known[k] = known
	return known.Result
}

// retryDelay is how long to wait after so many failures in a row.
func retryDelay(failures int) time.Duration {
	delay := minRetry
	for i := 1; i < failures && delay < maxRetry; i++ {
		delay *= 2
	}
	return min(delay, maxRetry)
}

// webhookVersions changes with the webhooks that lead to a revision.
func (c *Checker) webhookVersions(ctx context.Context, revision string) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	kind := Webhooks().GroupVersionKind()
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.webhooks.List(ctx, list, client.MatchingLabels{v1.LabelRevision: revision}); err != nil {
		return "", fmt.Errorf("list the webhooks of revision %s: %w", revision, err)
	}
	versions := make([]string, 0, len(list.Items))
	for i := range list.Items {
		versions = append(versions, fmt.Sprintf("%s/%d", list.Items[i].UID, list.Items[i].Generation))
	}
	slices.Sort(versions)
	return strings.Join(versions, " "), nil
}

// check tries a way in one namespace after the other, until the result does not depend on the namespace. That the injector
// refuses a pod in any of them counts more than that another could not be checked.
func (c *Checker) check(ctx context.Context, way Way, request Request) (Verdict, string) {
	verdict, words := Unchecked, "there is no namespace without the labels "+v1.LabelInjection+" and "+v1.LabelRevision+
		" in which a pod could select its injector by its own label"
	for i, namespace := range request.Namespaces[way] {
		if i == maxNamespaces {
			break
		}
		var control error
		a := c.create(ctx, namespace, way.labels())
		if needsControl(a.err) {
			control = c.create(ctx, namespace, uninjected()).err
		}
		now, said := judge(a, control, request.Revision)
		if i == 0 || now == Injects || now == Fails && verdict == Unchecked {
			verdict, words = now, said
		}
		if !dependsOnNamespace(a, control) {
			break
		}
	}
	return verdict, words
}

func (c *Checker) create(ctx context.Context, namespace string, labels map[string]string) answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pod := newPod(namespace, labels)
	err := c.client.Create(ctx, pod, client.DryRunAll, client.FieldOwner(v1.FieldOwnerMigration))
	return answer{namespace, pod, err}
}
