package conversion

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "fairlead_conversion_reviews_total" {
				counts[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	return counts
}

// What an alert fires on is counted by what became of a review, and from zero: a rate needs the zero.
func TestReviewsAreCounted(t *testing.T) {
	for result, body := range map[string]string{
		converted: review(newer, `{"apiVersion":"`+older+`","kind":"Materialize"}`),
		failed:    review(newer, `{"apiVersion":"`+older+`","kind":"Pod"}`),
		refused:   `{"kind":"ConversionReview"`,
	} {
		t.Run(result, func(t *testing.T) {
			reviews.Reset()
			for _, other := range []string{converted, failed, refused} {
				reviews.WithLabelValues(other)
			}
			want := map[string]float64{converted: 0, failed: 0, refused: 0}
			want[result] = 1
			send(t, http.MethodPost, body)
			if diff := cmp.Diff(want, counted(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
