package crds

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/faults"
)

func TestResumesAfterACrash(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	tests := map[string]struct {
		before func(boats string)
		opts   Options
	}{
		"one to update, one to create": {
			before: func(boats string) { h.install(makeCRD(boats).Schema(1).Obj(), Options{}).is(Created, "") },
		},
		"one to take over, webhook included, one to create": {
			before: func(boats string) {
				if err := h.Create(t.Context(), makeCRD(boats).Webhook().Obj()); err != nil {
					t.Fatal(err)
				}
			},
			opts: Options{TakeOver: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scenario := faults.Scenario{Config: h.cfg, Setup: func(testing.TB) faults.World {
				boats, crews := h.fresh("boats"), h.fresh("crews")
				tc.before(boats)
				return h.installation(tc.opts, makeCRD(boats).Schema(2).Field("crew").Obj(), makeCRD(crews).Schema(1).Obj())
			}}
			faults.DisturbEveryWrite(t, scenario, faults.CutBefore(), faults.CutAfter(), faults.Conflict(), faults.TooManyRequests(0), faults.InternalError())
		})
	}
}

// installation is a world in which two CRDs are installed.
func (h *harbour) installation(opts Options, crds ...*apiextensionsv1.CustomResourceDefinition) faults.World {
	return faults.World{
		Run: func(ctx context.Context, cfg *rest.Config) error {
			_, err := install(ctx, cfg, crds, opts)
			return err
		},
		Settled: func(ctx context.Context) error {
			for _, want := range crds {
				live, err := h.find(ctx, want.Name)
				if err != nil {
					return err
				}
				if outcome, message := decide(live, want, false); outcome != Unchanged {
					return fmt.Errorf("%s is to be %s %s", want.Name, outcome, message)
				}
				if ok, why := established(live); !ok {
					return fmt.Errorf("%s: %s", want.Name, why)
				}
			}
			return nil
		},
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			names := map[string]string{}
			for i, crd := range crds {
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
