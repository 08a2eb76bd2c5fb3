package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

func TestOverrides(t *testing.T) {
	const (
		skip    = v1.AnnotationSkipMigration
		batch   = v1.AnnotationMigrationBatch
		timeout = v1.AnnotationReadinessTimeout
	)
	cases := map[string]struct {
		annotations map[string]string
		want        overrides
		refusal     string
	}{
		"nothing":                 {nil, overrides{}, ""},
		"all":                     {map[string]string{skip: "false", batch: "3", timeout: "10s"}, overrides{priority: 3, timeout: 10 * time.Second}, ""},
		"skip":                    {map[string]string{skip: "true"}, overrides{skip: true}, ""},
		"a batch ahead of others": {map[string]string{batch: "-1"}, overrides{priority: -1}, ""},
		"a timeout of mixed units": {
			map[string]string{timeout: "1h30m"}, overrides{timeout: 90 * time.Minute}, "",
		},
		"what else is asked of one that is skipped does not matter": {
			map[string]string{skip: "true", batch: "soon", timeout: "never"}, overrides{skip: true}, "",
		},
		"skip in words": {
			map[string]string{skip: "please"}, overrides{},
			`annotation sailoperator.io/skip-migration of Deployment shop/cart is "please", and should be "true" or "false"`,
		},
		"skip empty": {
			map[string]string{skip: ""}, overrides{},
			`annotation sailoperator.io/skip-migration of Deployment shop/cart is "", and should be "true" or "false"`,
		},
		"batch in words": {
			map[string]string{batch: "first"}, overrides{},
			`annotation sailoperator.io/migration-batch of Deployment shop/cart is "first", and should be a whole number from -1000 to 1000`,
		},
		"half a batch": {
			map[string]string{batch: "1.5"}, overrides{},
			`annotation sailoperator.io/migration-batch of Deployment shop/cart is "1.5", and should be a whole number from -1000 to 1000`,
		},
		"batch beyond numbers": {
			map[string]string{batch: "99999999999999999999"}, overrides{},
			`annotation sailoperator.io/migration-batch of Deployment shop/cart is "99999999999999999999", and should be a whole number from -1000 to 1000`,
		},
		"batch above the bound": {
			map[string]string{batch: "1001"}, overrides{},
			`annotation sailoperator.io/migration-batch of Deployment shop/cart is "1001", and should be a whole number from -1000 to 1000`,
		},
		"batch below the bound": {
			map[string]string{batch: "-1001"}, overrides{},
			`annotation sailoperator.io/migration-batch of Deployment shop/cart is "-1001", and should be a whole number from -1000 to 1000`,
		},
		"timeout without a unit": {
			map[string]string{timeout: "10"}, overrides{},
			`annotation sailoperator.io/readiness-timeout of Deployment shop/cart is "10", and should be a duration such as 10m`,
		},
		"no time at all": {
			map[string]string{timeout: "0s"}, overrides{},
			`annotation sailoperator.io/readiness-timeout of Deployment shop/cart is "0s", and should be a duration such as 10m`,
		},
		"negative timeout": {
			map[string]string{timeout: "-5m"}, overrides{},
			`annotation sailoperator.io/readiness-timeout of Deployment shop/cart is "-5m", and should be a duration such as 10m`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := makeDeployment("shop/cart")
			d.Annotations = tc.annotations
			got, why := overridesOf(inventory.From(d))
			if tc.refusal != "" {
				want := passage.Because(v1.ReasonInvalidAnnotation, "%s", tc.refusal)
				if diff := cmp.Diff(&want, why); diff != "" {
					t.Errorf("refusal (-want +got):\n%s", diff)
				}
				return
			}
			if why != nil || got != tc.want {
				t.Errorf("got %+v, want %+v; %v", got, tc.want, why)
			}
		})
	}
}

// An annotation that cannot be read is a failure of that workload, whatever else becomes of it, and holds up no other.
func TestUnreadableWish(t *testing.T) {
	o := observed(namespace("shop", rev(target)),
		deploy("shop/cart", runs(old, 2), annotated(v1.AnnotationMigrationBatch, "first")),
		deploy("shop/pay", runs(old, 2)),
	)
	d := decide(o, epoch)
	want := []string{
		`Failed restart Deployment shop/cart from "default-v1-24-0", InvalidAnnotation: annotation sailoperator.io/migration-batch of Deployment shop/cart is "first", and should be a whole number from -1000 to 1000`,
		`Pending restart Deployment shop/pay from "default-v1-24-0", OnOldRevision: its pods still run the old revision`,
	}
	if diff := cmp.Diff(want, reported(d.Plan)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if len(d.Start) != 1 || d.Start[0].Object.Name != "pay" || len(d.endedMoves) > 0 {
		t.Errorf("starts %v and writes down %v", d.Start, d.endedMoves)
	}
}
