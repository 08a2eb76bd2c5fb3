package crds_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/faults"
)

func TestResumesAfterACrash(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	tests := map[string]struct {
		before func(boats string)
		opts   crds.Options
	}{
		"one to update, one to create": {
			before: func(boats string) { h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{}).is(crds.Created, "") },
		},
		"one to take over, webhook included, one to create": {
			before: func(boats string) {
				if err := h.Create(t.Context(), makeCRD(boats).Webhook().Obj()); err != nil {
					t.Fatal(err)
				}
			},
			opts: crds.Options{TakeOver: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scenario := faults.Scenario{Config: h.cfg, Setup: func(testing.TB) faults.World {
				boats, crews := h.fresh("boats"), h.fresh("crews")
				tc.before(boats)
				return h.installation(tc.opts, makeCRD(boats).Schema(2).Field("crew").Obj(), makeCRD(crews).Schema(1).Obj())
			}}
			disturb(t, scenario)
		})
	}
}

// disturb kills the process of a scenario at each of its writes, and refuses each in one of several ways; in full, in all
// of them.
func disturb(t *testing.T, scenario faults.Scenario) {
	t.Helper()
	refusals := []faults.Action{faults.Conflict(), faults.TooManyRequests(0), faults.InternalError()}
	faults.DisturbWrites(t, scenario, func(k int, _ faults.Log) []faults.Action {
		if faults.Full() {
			return append(faults.Kills(), refusals...)
		}
		return append(faults.Kills(), refusals[k%len(refusals)])
	})
}

// installation is a world in which two CRDs are installed.
func (h *hub) installation(opts crds.Options, wanted ...*apiextensionsv1.CustomResourceDefinition) faults.World {
	return faults.World{
		Run: func(ctx context.Context, cfg *rest.Config) error {
			_, err := install(ctx, cfg, wanted, opts)
			return err
		},
		Settled: func(ctx context.Context) error {
			for _, want := range wanted {
				live, err := h.find(ctx, want.Name)
				if err != nil {
					return err
				}
				if !same(live, want) {
					return fmt.Errorf("%s is not as it should be: %v", want.Name, live.Spec)
				}
				if err := established(live); err != nil {
					return err
				}
			}
			return nil
		},
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			names := map[string]string{}
			for i, crd := range wanted {
				names[crd.Spec.Names.Plural] = fmt.Sprintf("plural-%d", i)
				names[crd.Spec.Names.Kind] = fmt.Sprintf("Kind-%d", i)
				names[strings.ToLower(crd.Spec.Names.Kind)] = fmt.Sprintf("singular-%d", i)
			}
			dump := faults.Dump{
				Kinds: []schema.GroupVersionKind{apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")},
				Names: names,
			}
			all, err := dump.Snapshot(ctx, h)
			maps.DeleteFunc(all, func(key, _ string) bool { return !strings.Contains(key, " plural-") })
			return all, err
		},
	}
}
