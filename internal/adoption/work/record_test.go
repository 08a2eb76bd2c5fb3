package work

import (
	"testing"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestEqualForUsers(t *testing.T) {
	const was = "Deployment apps/v1\nmetadata: {uid: u, labels: {app: a}}\nspec: {replicas: 1}"
	for name, c := range map[string]struct {
		other string
		want  bool
	}{
		"the same":              {was, true},
		"labels of the hub":     {"Deployment apps/v1\nmetadata: {uid: u, labels: {app: a, karmada.io/managed: 'true', fairlead.dev/hub: h, fairlead.dev/work: w}}\nspec: {replicas: 1}", true},
		"another status":        {was + "\nstatus: {replicas: 1}", true},
		"another version of it": {"Deployment apps/v1\nmetadata: {uid: u, resourceVersion: '9', labels: {app: a}}\nspec: {replicas: 1}", true},
		"another label":         {"Deployment apps/v1\nmetadata: {labels: {app: b}}\nspec: {replicas: 1}", false},
		"an annotation":         {"Deployment apps/v1\nmetadata: {labels: {app: a}, annotations: {a: b}}\nspec: {replicas: 1}", false},
		"another field":         {"Deployment apps/v1\nmetadata: {labels: {app: a}}\nspec: {replicas: 2}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EqualForUsers(adoptiontest.Object(t, was), adoptiontest.Object(t, c.other)); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
