package passage_test

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/passage"
)

// A passage observes, asks its gates, plans, and lets Next decide what to start.
func Example() {
	type observed struct {
		paused        bool
		revisionReady bool
		workloads     []string
	}
	notPaused := func(o observed) *passage.Reason {
		if o.paused {
			return passage.Hold("Paused", "paused by fairlead.dev/paused")
		}
		return nil
	}
	revisionReady := func(o observed) *passage.Reason {
		if !o.revisionReady {
			return passage.Hold("RevisionNotReady", "default-v1-26-0 is not ready yet")
		}
		return nil
	}
	planFor := func(o observed) passage.Plan {
		plan := passage.Plan{
			Passage: "migration",
			Subject: passage.Object{APIVersion: "sailoperator.io/v1", Kind: "Istio", Name: "default"},
			Target:  "default-v1-26-0",
			Hold:    passage.FirstHold(o, notPaused, revisionReady),
		}
		for _, name := range o.workloads {
			plan.Steps = append(plan.Steps, passage.Step{
				Object:     passage.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name},
				Action:     "Restart",
				From:       "default-v1-24-0",
				To:         "default-v1-26-0",
				Reason:     passage.Because("BehindActiveRevision", "its pods run default-v1-24-0"),
				Disruptive: true,
			})
		}
		return plan
	}

	now := time.Date(2025, 10, 21, 10, 30, 0, 0, time.UTC)
	batching := passage.Batching{Size: 2, Delay: 30 * time.Second}
	shop := observed{workloads: []string{"cart", "pay", "web"}}

	decision := passage.Next(planFor(shop), batching, now)
	fmt.Println(decision.Outcome, "because", decision.Reason)

	shop.revisionReady = true
	decision = passage.Next(planFor(shop), batching, now)
	for _, step := range decision.Start {
		fmt.Printf("%s %s in batch %d of %d, since %s\n", step.Action, step.Object, step.Batch, decision.Batches, step.Reason.Message)
	}

	// Output:
	// Held because RevisionNotReady: default-v1-26-0 is not ready yet
	// Restart Deployment shop/cart in batch 1 of 2, since its pods run default-v1-24-0
	// Restart Deployment shop/pay in batch 1 of 2, since its pods run default-v1-24-0
}
