package scale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	listed = 2000
	// maxConversion is how many times as long a list may take in a version that is not the stored one.
	maxConversion = 3
	listRounds    = 9
)

// BenchmarkConversionList compares a list of 2,000 Materializes in the version in which they are stored with one in the
// other version: as everybody lists, which the API server answers from what it holds in memory, and from storage, when every
// object has to be converted on the way.
func BenchmarkConversionList(b *testing.B) {
	h := newHub(b)
	h.lead(b)
	h.served(b, h.operator(b))
	h.fillMaterializes(b)
	h.forget(b)
	for round := 1; b.Loop(); round++ {
		rows := [][]string{{"", "as stored", "in the other version", "ratio", "limit", "conversions"}}
		for _, what := range []string{"from memory", "from storage"} {
			query := ""
			if what == "from storage" {
				query = h.past()
			}
			stored, converted := make([]float64, listRounds), make([]float64, listRounds)
			before := h.conversions(b)
			for i := range listRounds {
				stored[i], converted[i] = h.list(b, "v1alpha2", query), h.list(b, "v1alpha1", query)
			}
			ratio := median(converted) / median(stored)
			rows = append(rows, []string{
				what, fmt.Sprintf("%.0f ms", median(stored)), fmt.Sprintf("%.0f ms", median(converted)), fmt.Sprintf("%.2f", ratio),
				fmt.Sprint(maxConversion), fmt.Sprintf("%.0f", h.conversions(b)-before),
			})
			b.ReportMetric(ratio, "ratio-"+strings.ReplaceAll(what, " ", "-"))
			if ratio > maxConversion {
				b.Errorf("%s, a list through conversion takes %.2f times as long as one without: more than %d", what, ratio, maxConversion)
			}
		}
		printRows(fmt.Sprintf("A list of %d Materializes, median of %d, round %d.", listed, listRounds, round), rows...)
	}
}

// forget has the API server drop what it holds in memory, by a change of the CRD, and read it anew. What was before that, it
// can tell from storage only.
func (h *hub) forget(b *testing.B) {
	b.Helper()
	var all v1alpha2.MaterializeList
	if err := h.List(b.Context(), &all, client.Limit(1)); err != nil {
		b.Fatal(err)
	}
	h.revision = all.ResourceVersion
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "materializes.materialize.cloud"}}
	patch := []byte(`[{"op":"add","path":"/spec/versions/0/additionalPrinterColumns/-","value":{"name":"Tide","type":"string","jsonPath":".spec.tide"}}]`)
	if err := h.Patch(b.Context(), crd, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		b.Fatal(err)
	}
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		table, err := h.listing("v1alpha1", "limit=1").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
		if err == nil && !strings.Contains(string(table), "Tide") {
			err = errors.New("the CRD is still the one that was")
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	err = wait.Try(b.Context(), func(ctx context.Context) error {
		for _, version := range []string{"v1alpha2", "v1alpha1"} {
			if _, err := h.listing(version, "").DoRaw(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("after a change of the CRD, the API server has all in memory again within %.1f s\n", time.Since(began).Seconds())
}

// past asks for the list as it was before all was forgotten.
func (h *hub) past() string { return "resourceVersionMatch=Exact&resourceVersion=" + h.revision }

// lead takes the lease from every operator, which then serves webhooks and does nothing else.
func (h *hub) lead(b *testing.B) {
	b.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "fairlead-rollout"}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("nobody"), ptr.To[int32](24*60*60)
	lease.Spec.AcquireTime, lease.Spec.RenewTime = ptr.To(metav1.NowMicro()), ptr.To(metav1.NowMicro())
	if err := h.Create(b.Context(), lease); err != nil {
		b.Fatal(err)
	}
}

func (h *hub) listing(version, query string) *rest.Request {
	return h.kube.Discovery().RESTClient().Get().RequestURI("/apis/materialize.cloud/" + version + "/materializes?" + query)
}

// list is how many milliseconds it takes until the whole of a list is there. It is not parsed, which would take as long in
// any version.
func (h *hub) list(b *testing.B, version, query string) float64 {
	b.Helper()
	began := time.Now()
	if _, err := h.listing(version, query).DoRaw(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(began).Seconds() * 1000
}

// conversions is how many objects the API server has had converted, one by one.
func (h *hub) conversions(b *testing.B) float64 {
	b.Helper()
	page, err := serverPage(b.Context(), h.kube)
	if err != nil {
		b.Fatal(err)
	}
	return page.sum("apiserver_crd_conversion_webhook_duration_seconds_count", nil)
}

// fillMaterializes makes environments as they are in use: applied, rolled out and told about.
func (h *hub) fillMaterializes(b *testing.B) {
	b.Helper()
	began := time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for i := range listed / 100 {
		if err := h.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			group.Go(func() error { return h.makeMaterialize(ctx, namespaceName(i), fmt.Sprintf("mz-%02d", j)) })
		}
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("made %d Materializes in %.0f s\n", listed, time.Since(began).Seconds())
}

func (h *hub) makeMaterialize(ctx context.Context, namespace, name string) error {
	m := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "terraform", "team": namespace},
		Annotations: map[string]string{"example.org/owner": "people@example.org"},
	}}
	resources := &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")},
	}
	m.Spec.EnvironmentdImageRef, m.Spec.BackendSecretName = "docker.io/materialize/environmentd:v26.1.0", "materialize-backend"
	m.Spec.EnvironmentdExtraArgs = []string{"--system-parameter-default=max_clusters=20", "--log-filter=info"}
	m.Spec.EnvironmentdResourceRequirements, m.Spec.BalancerdResourceRequirements = resources, resources
	m.Spec.ServiceAccountAnnotations = map[string]string{v1alpha2.AnnotationRoleArn: "arn:aws:iam::123456789012:role/" + name}
	m.Spec.PodLabels = map[string]string{"team": namespace, "cost-centre": "4711"}
	if err := h.Create(ctx, m); err != nil {
		return err
	}
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	now := metav1.NewTime(time.Now())
	m.Status.ObservedGeneration, m.Status.ResourceID, m.Status.ActiveGeneration = m.Generation, "a1b2c3d4e5", 1
	m.Status.EnvironmentID, m.Status.RolloutRequestedAt = v1alpha2.UUID(m.UID), &now
	m.Status.LastCompletedRolloutHash, m.Status.RequestedRolloutHash, m.Status.RolloutHashVersion = hash, hash, 1
	m.Status.LastCompletedRolloutEnvironmentdImageRef = m.Spec.EnvironmentdImageRef
	m.Status.Conditions = []metav1.Condition{{
		Type: v1alpha2.ConditionUpToDate, Status: metav1.ConditionTrue, Reason: string(v1alpha2.ReasonApplied),
		Message: "generation 1 serves the current spec", ObservedGeneration: m.Generation, LastTransitionTime: now,
	}}
	return h.Status().Update(ctx, m)
}
