package adoption_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const maintenance = `[{"key":"maintenance","value":"planned","effect":"NoSchedule"}]`

// Where resources go by taints, by groups of clusters and by spread constraints, over two members and two clusters that cannot be
// reached, which are as good to choose. A taint on a cluster in use moves nothing.
func TestTaintsGroupsAndSpread(t *testing.T) {
	s := newStage(t)
	for name, region := range map[string]string{"far1": "north", "far2": "north"} {
		s.addUnreachable(t, name, region)
	}
	s.patchCluster(t, member1, `{"spec":{"region":"east","taints":`+maintenance+`}}`)
	s.patchCluster(t, member2, `{"spec":{"region":"west"}}`)
	for _, name := range []string{member1, member2} {
		t.Cleanup(func() { s.patchCluster(t, name, `{"spec":{"region":null,"taints":null}}`) })
	}
	for _, c := range []struct{ name, placement, want string }{
		// A taint holds for what is placed later, so the operator has to have seen it. It has when it places by the regions.
		{"regions", "{clusterTolerations: [{operator: Exists}], clusterAffinity: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [north, east, west]}]}}}", "far1 far2 member1 member2"},
		{"tainted", "{}", "far1 far2 member2"},
		{"tolerated", "{clusterTolerations: [{key: maintenance, operator: Equal, value: planned, effect: NoSchedule}]}", "far1 far2 member1 member2"},
		{"groups", "{clusterAffinities: [{affinityName: primary, clusterNames: [member1]}, {affinityName: secondary, clusterNames: [member2]}]}", "member2"},
		{"spread", "{clusterTolerations: [{operator: Exists}], spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 2}, {spreadByField: cluster, maxGroups: 2}]}", "far1 member1"},
		{"unmet", "{spreadConstraints: [{spreadByField: region, minGroups: 4}]}", ""},
	} {
		p := policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) { p.ResourceSelectors[0].Name = c.name })
		p.Name, p.Spec.Placement = c.name, policyv1alpha1.Placement{}
		if err := yaml.UnmarshalStrict([]byte(c.placement), &p.Spec.Placement); err != nil {
			t.Fatal(err)
		}
		s.create(t, s.hub, configMap(c.name), p)
		t.Run(c.name, func(t *testing.T) { s.goes(t, c.name+"-configmap", c.want) })
	}
	t.Run("in the members", func(t *testing.T) {
		for name, where := range map[string][]string{"tainted": {member2}, "tolerated": {member1, member2}, "groups": {member2}, "spread": {member1}} {
			for _, member := range where {
				s.until(t, s.members[member], configMap(name), func() error { return nil })
			}
		}
		for name, member := range map[string]string{"tainted": member1, "groups": member1, "spread": member2} {
			if err := s.members[member].Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, configMap(name)); !apierrors.IsNotFound(err) {
				t.Errorf("%s is in %s: %v", name, member, err)
			}
		}
	})
	t.Run("the reasons", func(t *testing.T) {
		s.says(t, "unmet-configmap", "NoClusterFit", "the joined clusters do not meet spec.placement.spreadConstraints of the policy")
		if b := s.says(t, "groups-configmap", applied); b.Status.SchedulerObservedAffinityName != "secondary" {
			t.Errorf("the group is %q", b.Status.SchedulerObservedAffinityName)
		}
	})
	t.Run("taints that come and go", func(t *testing.T) {
		s.patchCluster(t, member2, `{"spec":{"taints":`+strings.Replace(maintenance, "NoSchedule", "NoExecute", 1)+`}}`)
		s.patchCluster(t, member1, `{"spec":{"taints":null}}`)
		s.goes(t, "tainted-configmap", "far1 far2 member1 member2")
		s.follows(t, "groups-configmap", member2, "the resource stays in clusters with a NoExecute taint that the policy does not tolerate: member2; Fairlead evicts nothing")
		s.until(t, s.members[member2], configMap("groups"), func() error { return nil })
	})
}

// addUnreachable adds a Cluster that the hub has no credentials for.
func (s *stage) addUnreachable(t testing.TB, name, region string) {
	t.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: "127.0.0.1:1", Region: region}}
	if err := s.hub.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.patchCluster(t, name, `{"metadata":{"annotations":{"fairlead.dev/abandon":"true"}}}`)
		if err := s.hub.Delete(context.Background(), c); err != nil {
			t.Error(err)
		}
		err := wait.Try(context.Background(), func(ctx context.Context) error {
			if err := s.hub.Get(ctx, client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
				return fmt.Errorf("Cluster %s is still there: %v", name, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func (s *stage) patchCluster(t testing.TB, name, patch string) {
	t.Helper()
	if err := s.hub.Patch(context.Background(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Error(err)
	}
}

// goes waits until a binding has these clusters, and has reported on that.
func (s *stage) goes(t testing.TB, binding, want string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var b workv1alpha2.ResourceBinding
		if err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: binding}, &b); err != nil {
			return err
		}
		var names []string
		for _, c := range b.Spec.Clusters {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled)
		if strings.Join(names, " ") != want || scheduled == nil || scheduled.ObservedGeneration != b.Generation || (scheduled.Status == metav1.ConditionTrue) != (want != "") {
			return fmt.Errorf("goes to %v, and not to %s: %+v", names, want, scheduled)
		}
		return nil
	})
}
