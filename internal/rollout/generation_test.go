package rollout

import (
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// TestUnreadableRecord: one that tells nothing is as good as none.
func TestUnreadableRecord(t *testing.T) {
	s := seeing(t, makeMaterialize().serving(t, 1, makeMaterialize())).generation(1, makeMaterialize())
	configMap := s.Generations[1].Objects[0]
	configMap.Object["data"] = map[string]any{v1alpha2.RecordSpec: "{"}
	g := &Generation{Number: 1}
	if err := g.add(configMap, currentHasher); err != nil {
		t.Fatal(err)
	}
	if g.Record != nil || g.Hash != "" {
		t.Errorf("it tells %+v", g)
	}
}
