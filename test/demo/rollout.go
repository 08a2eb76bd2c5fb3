package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/test/harness/environmentd"
)

// rollout takes an environment of Materialize from generation to generation.
var rollout = play{
	opening: opening, sites: alone,
	title: "The operator, with the chart's permissions and no others; environmentds are played, and take a while to catch up",
	prepare: func(_ context.Context, d *demo) ([]string, error) {
		// They answer for as long as this process is there.
		fleet := environmentd.Start()
		fleet.Behave(environmentd.Manner{CatchesUpAfter: d.catchUp()})
		return []string{"--passages", "rollout", "--environmentd-url", fleet.URL()}, nil
	},
	crd:  "materializes.materialize.cloud",
	acts: rolloutActs,
	look: "mzs -A",
}

func (d *demo) catchUp() time.Duration {
	if d.fast {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

const samples = "docs/samples/rollout/"

// of is a command of Fairlead about an environment.
func of(environment string, code int, verb string, args ...string) scene {
	return fairlead(code, append([]string{verb, "mzs", environment, "-n", "shop"}, args...)...)
}

func patch(spec string) scene {
	return kubectl("patch", "mzs", "production", "-n", "shop", "--type=merge", "-p", fmt.Sprintf(`{"spec":{%s}}`, spec))
}

func rolloutActs(*demo) ([]act, error) {
	environments := kubectl("get", "mzs", "-n", "shop")
	generations := kubectl("get", "statefulsets,deployments", "-n", "shop")
	served := of("production", done, "watch", "--wait", "--timeout", deadline())
	parked := kubectl("wait", "mzs/production", "-n", "shop", "--timeout="+deadline(),
		`--for=jsonpath={.status.conditions[?(@.type=="UpToDate")].reason}=ReadyToPromote`)
	return []act{
		{"An environment: its first generation", []scene{
			kubectl("apply", "-f", samples+"backend.yaml", "-f", samples+"production.yaml"),
			served, environments, generations,
		}},
		{"One more balancerd: would that roll environmentd out?", []scene{
			of("production", unfinished, "plan", "-f", samples+"wider.yaml"),
			kubectl("apply", "-f", samples+"wider.yaml"),
			served, generations,
		}},
		{"Another image: would that?", []scene{
			of("production", unfinished, "plan", "-f", samples+"upgrade.yaml"),
		}},
		{"It is applied, and that is all: the next generation is made, catches up, and takes over", []scene{
			kubectl("apply", "-f", samples+"upgrade.yaml"),
			served, environments, generations,
		}},
		{"With ManuallyPromote a person says when: the next generation is ready, and waits", []scene{
			kubectl("apply", "-f", samples+"manual.yaml"),
			parked,
			of("production", unfinished, "status"),
			of("production", done, "promote", "--yes"),
			served, environments,
		}},
		{"A change of mind: it goes back to what serves, which nobody has touched", []scene{
			patch(`"environmentdImageRef":"materialize/environmentd:v26.4.0"`),
			parked,
			of("production", done, "abort", "--yes"),
			served, environments,
		}},
		{"A manifest from before, in v1alpha1, works beside; a new requestRollout alone rolls nothing out any more", []scene{
			kubectl("apply", "-f", samples+"staging.yaml"),
			of("staging", done, "watch", "--wait", "--timeout", deadline()),
			kubectl("patch", "materializes.v1alpha1.materialize.cloud", "staging", "-n", "shop", "--type=merge", "-p",
				`{"spec":{"requestRollout":"b7f6a1de-93a5-4c0e-8f43-5a1f1e6f7c22"}}`),
			of("staging", done, "plan"),
			environments,
		}},
		{"What happened", []scene{
			kubectl("get", "events", "-n", "shop", "--field-selector", "involvedObject.kind=Materialize", "--sort-by=.metadata.creationTimestamp"),
		}},
		{"A mistake is refused where it is made", []scene{
			{code: refused, command: patch(`"rolloutStrategy":"Hope"`).command},
		}},
	}, nil
}
