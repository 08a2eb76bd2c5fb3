package rollout

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// TestUnreadableRecord: one that tells nothing is as good as none.
func TestUnreadableRecord(t *testing.T) {
	s := seeing(t, makeMaterialize().serving(t, 1, makeMaterialize())).generation(1, makeMaterialize())
	configMap := s.Generations[1].Objects[0]
	configMap.Object["data"] = map[string]any{v1alpha2.RecordSpec: "{"}
	g := &Generation{Number: 1}
	if err := g.add(s.Materialize, configMap, currentHasher); err != nil {
		t.Fatal(err)
	}
	if g.Record != nil || g.Hash != "" {
		t.Errorf("it tells %+v", g)
	}
}

// TestForgedRecord: who can write ConfigMaps in a namespace names no object in them but the StatefulSet of the generation, and no
// generation in a ConfigMap of another name.
func TestForgedRecord(t *testing.T) {
	serving := func() scene {
		return seeing(t, makeMaterialize().serving(t, 1, makeMaterialize())).generation(1, makeMaterialize()).complete()
	}
	names := objects.NamesOf(serving().Materialize)
	forge := func(name string, set func(*unstructured.Unstructured), record bool) *unstructured.Unstructured {
		s := serving()
		configMap := s.Generations[1].Objects[0].DeepCopy()
		stored := objects.ReadRecord(s.Materialize, 1, configMap).StatefulSet
		stored.SetNamespace("shop")
		set(stored)
		text, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		configMap.SetName(name)
		data := map[string]any{v1alpha2.RecordStatefulSet: string(text)}
		if before, _, _ := unstructured.NestedString(configMap.Object, "data", v1alpha2.RecordSpec); record {
			data[v1alpha2.RecordSpec] = before
		}
		configMap.Object["data"] = data
		return configMap
	}
	for name, set := range map[string]func(*unstructured.Unstructured){
		"another kind": func(set *unstructured.Unstructured) {
			set.SetGroupVersionKind(objects.KindRoleBinding)
			set.Object["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "cluster-admin"}
		},
		"another name":      func(set *unstructured.Unstructured) { set.SetName("coredns") },
		"another namespace": func(set *unstructured.Unstructured) { set.SetNamespace("kube-system"); set.SetName("coredns") },
		"another version":   func(set *unstructured.Unstructured) { set.SetAPIVersion("apps/v1beta1") },
		"its namespace":     func(set *unstructured.Unstructured) { set.SetNamespace("kube-system") },
	} {
		for kind, configMap := range map[string]*unstructured.Unstructured{
			"record": forge(names.Generation(1), set, true), "backup": forge(names.Backup(1), set, false),
		} {
			t.Run(kind+": "+name, func(t *testing.T) {
				s := serving().without(1, "StatefulSet").without(1, "ConfigMap")
				if err := s.Generations[1].add(s.Materialize, configMap, currentHasher); err != nil {
					t.Fatal(err)
				}
				for key, object := range decide(s.Observed, epoch).desired {
					if object.GetNamespace() != "shop" || key.Kind == "RoleBinding" || key.Name == "coredns" {
						t.Errorf("%s would be written", key)
					}
				}
			})
		}
	}
	asWritten := func(*unstructured.Unstructured) {}
	for name, c := range map[string]struct {
		configMap        *unstructured.Unstructured
		recorded, backed bool
	}{
		"a record":                       {forge(names.Generation(1), asWritten, true), true, false},
		"a record of another generation": {forge(names.Generation(2), asWritten, true), false, false},
		"a record of another name":       {forge("theirs", asWritten, true), false, false},
		"a backup":                       {forge(names.Backup(1), asWritten, false), false, true},
		"a backup of another name":       {forge(names.Generation(1), asWritten, false), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Generation{Number: 1}
			if err := g.add(serving().Materialize, c.configMap, currentHasher); err != nil {
				t.Fatal(err)
			}
			if (g.Record != nil) != c.recorded || (g.Backup != nil) != c.backed {
				t.Errorf("record %v, backup %v", g.Record, g.Backup)
			}
		})
	}
}
