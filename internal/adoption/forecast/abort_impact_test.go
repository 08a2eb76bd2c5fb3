package forecast

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// What `fairlead abort` asks users to confirm is what the operator releases.
func TestAbortImpact(t *testing.T) {
	p, q := model.PolicyKey{Namespace: "shop", Name: "p"}, model.PolicyKey{Namespace: "shop", Name: "q"}
	bound := func(name string, by model.PolicyKey, requiredBy ...workv1alpha2.BindingSnapshot) client.Object {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: name})
		b.SetUID(types.UID(name))
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Thing", Namespace: "shop", Name: name}
		model.Claim(b, by)
		b.Spec.RequiredBy = requiredBy
		return b.Object
	}
	placed := func(binding client.Object, cluster string) client.Object {
		model.AsBinding(binding).Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster}}
		return binding
	}
	in := func(name string, clusters ...string) workv1alpha2.BindingSnapshot {
		s := workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name}
		for _, c := range clusters {
			s.Clusters = append(s.Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		return s
	}
	work := func(binding, cluster string) *workv1alpha1.Work {
		return &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace(cluster), Name: binding, Labels: map[string]string{model.LabelBinding: binding}},
			Status:     workv1alpha1.WorkStatus{ManifestStatuses: []workv1alpha1.ManifestStatus{{}}},
		}
	}
	original := func(w *workv1alpha1.Work) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: model.OriginalName(w), Labels: map[string]string{model.LabelRestore: "true"}}}
	}
	unwritten := work("cart", "west")
	unwritten.Status = workv1alpha1.WorkStatus{}
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing is taken":         {nil, ""},
		"in two clusters":          {[]client.Object{bound("cart", p), work("cart", "east"), work("cart", "west")}, "release cart in east, release cart in west"},
		"two in one cluster":       {[]client.Object{bound("cart", p), bound("pay", p), work("cart", "west"), work("pay", "west")}, "release cart in west, release pay in west"},
		"changed by its takeover":  {[]client.Object{bound("cart", p), work("cart", "east"), work("cart", "west"), original(work("cart", "west"))}, "restore cart in west, release cart in east"},
		"not written yet":          {[]client.Object{bound("cart", p), unwritten}, ""},
		"of another policy":        {[]client.Object{bound("pay", q), work("pay", "west"), original(work("pay", "west"))}, ""},
		"a Work without a binding": {[]client.Object{bound("cart", p), work("gone", "west"), work("", "west")}, ""},
		"with a dependency": {
			[]client.Object{bound("cart", p), bound("settings", model.PolicyKey{}, in("cart", "west")), work("cart", "west"), work("settings", "west")},
			"release cart in west, release settings in west",
		},
		"a dependency that another policy takes": {
			[]client.Object{bound("cart", p), placed(bound("settings", q, in("cart", "west")), "west"), work("cart", "west"), work("settings", "west")},
			"release cart in west",
		},
		"a dependency that another policy takes to another cluster": {
			[]client.Object{bound("cart", p), placed(bound("settings", q, in("cart", "west")), "east"), work("settings", "east"), work("settings", "west")},
			"release settings in west",
		},
		"a dependency that another resource requires too": {
			[]client.Object{
				bound("cart", p), bound("pay", q), bound("settings", model.PolicyKey{}, in("cart", "west"), in("pay", "west")),
				work("cart", "west"), work("settings", "west"), original(work("settings", "west")),
			},
			"release cart in west",
		},
		"a dependency that another resource requires in another cluster": {
			[]client.Object{
				bound("cart", p), bound("pay", q), bound("settings", model.PolicyKey{}, in("cart", "east", "west"), in("pay", "east")),
				work("settings", "east"), work("settings", "west"),
			},
			"release settings in west",
		},
		"a dependency that two resources of the policy require": {
			[]client.Object{
				bound("cart", p), bound("pay", p), bound("settings", model.PolicyKey{}, in("cart", "west"), in("pay", "west")), work("settings", "west"),
			},
			"release settings in west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AbortImpactOf(t.Context(), adoptiontest.NewAPI(t, nil, c.objects...), &policy.Policy{Namespace: "shop", Name: "p"})
			var text []string
			for _, o := range got.Restored {
				text = append(text, "restore "+o.Name+" in "+o.Cluster)
			}
			for _, o := range got.Released {
				text = append(text, "release "+o.Name+" in "+o.Cluster)
			}
			if strings.Join(text, ", ") != c.want || err != nil {
				t.Errorf("got %s, %v", text, err)
			}
		})
	}
}
