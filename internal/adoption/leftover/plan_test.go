package leftover

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

var deletionTime = metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

func bindingTo(clusters ...string) *model.Binding {
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-configmap"})
	model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return b
}

func TestDecide(t *testing.T) {
	asked := func(value string) func(*Observed) {
		return func(o *Observed) { o.Cluster.Annotations = map[string]string{AnnotationLeftovers: value} }
	}
	bound := func(b *model.Binding, changes ...func(*model.Binding)) func(*Observed) {
		for _, change := range changes {
			change(b)
		}
		return func(o *Observed) { o.Binding = b }
	}
	deleting := func(b *model.Binding) { b.SetDeletionTimestamp(&deletionTime) }
	unclaimed := func(b *model.Binding) { model.Claim(b, model.PolicyKey{}) }
	for name, c := range map[string]struct {
		change []func(*Observed)
		want   passage.Action
	}{
		"another hub's, or no longer labelled":            {[]func(*Observed){asked(DeleteLeftovers), func(o *Observed) { o.Managed = false }}, model.ActionNone},
		"its Work is there":                               {[]func(*Observed){asked(DeleteLeftovers), func(o *Observed) { o.HasWork = true }}, model.ActionNone},
		"the cluster is leaving":                          {[]func(*Observed){asked(DeleteLeftovers), func(o *Observed) { o.Cluster.DeletionTimestamp = &deletionTime }}, model.ActionNone},
		"its Work is about to be created":                 {[]func(*Observed){asked(DeleteLeftovers), bound(bindingTo("west"))}, model.ActionWait},
		"its binding is being deleted":                    {[]func(*Observed){asked(DeleteLeftovers), bound(bindingTo("west"), deleting)}, model.ActionWait},
		"the hub knows nothing of it":                     {nil, model.ActionLeave},
		"its template goes elsewhere":                     {[]func(*Observed){bound(bindingTo("east"))}, model.ActionLeave},
		"no policy takes its template":                    {[]func(*Observed){bound(bindingTo("west"), unclaimed)}, model.ActionLeave},
		"another value of the annotation":                 {[]func(*Observed){asked("yes")}, model.ActionLeave},
		"to be released":                                  {[]func(*Observed){asked(ReleaseLeftovers)}, model.ActionOrphan},
		"to be released, and goes elsewhere":              {[]func(*Observed){asked(ReleaseLeftovers), bound(bindingTo("east"))}, model.ActionOrphan},
		"to be deleted, and protected":                    {[]func(*Observed){asked(DeleteLeftovers), func(o *Observed) { o.Protected = true }}, model.ActionOrphan},
		"to be deleted":                                   {[]func(*Observed){asked(DeleteLeftovers)}, model.ActionDelete},
		"to be deleted, and no policy takes its template": {[]func(*Observed){asked(DeleteLeftovers), bound(bindingTo("west"), unclaimed)}, model.ActionDelete},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Managed: true, Cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}}
			for _, change := range c.change {
				change(&o)
			}
			got, reason := Decide(o)
			if got != c.want || (got != model.ActionNone) != (reason.Message != "") {
				t.Errorf("got %s, %s", got, reason)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	first := model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "it"}.Object()
	if got := summarize("west", 2, first); !strings.Contains(got, "2 objects have the labels of this hub in cluster west and no Work on the hub, the first: ConfigMap shop/it; ") ||
		!strings.Contains(got, "annotate Cluster west with fairlead.dev/leftovers: Release to remove the labels, or fairlead.dev/leftovers: Delete") {
		t.Error(got)
	}
}
