package main

import (
	"context"
	"fmt"
	"os"
)

const istio = `apiVersion: sailoperator.io/v1
kind: Istio
metadata:
  name: default
spec:
  version: v1.24.0
  namespace: istio-system
  updateStrategy:
    type: RevisionBased
    inactiveRevisionDeletionGracePeriodSeconds: %d
    workloadMigration:
      strategy: Batched
      batched:
        batchSize: 6
        delayBetweenBatches: %s
        readinessTimeout: %s
---
apiVersion: sailoperator.io/v1
kind: IstioRevisionTag
metadata:
  name: prod
spec:
  targetRef:
    kind: Istio
    name: default
---
apiVersion: sailoperator.io/v1
kind: IstioRevisionTag
metadata:
  name: default
spec:
  targetRef:
    kind: Istio
    name: default
`

// migration brings up a mesh of 24 workloads, changes one line, and sees them all move.
var migration = play{
	opening: opening, sites: alone,
	title: "The operator, with the chart's permissions and no others, and with Istio's own charts",
	prepare: func(ctx context.Context, d *demo) ([]string, error) {
		return []string{"--chart-dir", d.path("charts")},
			d.show(ctx, scene{command: []string{"localkube", "charts", "--dir", d.path("charts")}})
	},
	crd:  "istiorevisiontags.sailoperator.io",
	acts: migrationActs,
	look: "istios",
}

func migrationActs(d *demo) ([]act, error) {
	const old, next = "default-v1-24-0", "default-v1-26-0"
	manifests, grace, delay := "istio.yaml", 5, "2s"
	if d.fast {
		grace, delay = 0, "0s"
	}
	// The one that never becomes ready has a timeout of its own, and is the only one to fail on a slow machine, too.
	if err := os.WriteFile(d.path(manifests), fmt.Appendf(nil, istio, grace, delay, deadline()), 0o644); err != nil {
		return nil, err
	}
	if err := writeWorkloads(d.path("workloads.yaml"), teams(old, "prod", d.fast)); err != nil {
		return nil, err
	}
	istiod := func(revision string) scene {
		return scene{command: []string{"localkube", "istiod", "--dir", d.path("kube"), "--revision", revision, "--wait", deadline()}}
	}
	return []act{
		{"A control plane, and two stable names for it", []scene{
			kubectl("create", "namespace", "istio-system"),
			kubectl("apply", "-f", d.path(manifests)),
			istiod(old),
			kubectl("wait", "istio/default", "--for=condition=Ready", "--timeout="+deadline()),
			kubectl("wait", "istiorevisiontag/prod", "istiorevisiontag/default", "--for=condition=Reconciled", "--timeout="+deadline()),
			kubectl("get", "istios,istiorevisions,istiorevisiontags"),
		}},
		{"A mesh: 24 workloads in 8 namespaces, with sidecars from a real istiod; one never becomes ready", []scene{
			kubectl("apply", "-f", d.path("workloads.yaml")),
			// One whose pods could not be made yet, while istiod was busy, would be missing in the plan.
			{play: func(ctx context.Context) error {
				return d.quietly(ctx, "localkube", "kubectl", "wait", "deployments", "--all", "-A",
					"--for=jsonpath={.status.updatedReplicas}", "--timeout="+deadline())
			}},
			kubectl("wait", "deployments", "--all", "-n", "shipping", "--for=condition=Available", "--timeout="+deadline()),
			kubectl("get", "deployments", "-A"),
			kubectl("get", "pods", "-n", "legacy", "-o",
				`custom-columns=POD:.metadata.name,REVISION:.metadata.annotations.istio\.io/rev,READY:.status.conditions[?(@.type=="Ready")].status`),
		}},
		{"The next version: what would happen, to every workload", []scene{
			fairlead(unfinished, "plan", "istio", "default", "--version", "v1.26.0", "--chart-dir", d.path("charts")),
		}},
		{"One line is changed", []scene{
			kubectl("patch", "istio", "default", "--type=merge", "-p", `{"spec":{"version":"v1.26.0"}}`),
			istiod(next),
			fairlead(refused, "watch", "istio", "default", "--wait", "--timeout", deadline()),
		}},
		{"One has failed, says why, and keeps the old control plane alive for what it still runs", []scene{
			fairlead(refused, "status", "istio", "default"),
			kubectl("get", "events", "-n", "legacy", "--field-selector", "reason=MigrationFailed"),
			kubectl("get", "istios,istiorevisions,istiorevisiontags"),
		}},
		{"What ails it is mended: its new pods get ready, on the new revision; then the old control plane goes by itself", []scene{
			kubectl("patch", "deployment", "mainframe", "-n", "legacy", "--type=merge", "-p",
				`{"metadata":{"annotations":{"sailoperator.io/readiness-timeout":null}},`+
					`"spec":{"template":{"metadata":{"annotations":{"localkube.fairlead.dev/ready-after":"0s"}}}}}`),
			kubectl("wait", "istio/default", "--for=condition=WorkloadsMigrated", "--timeout="+deadline()),
			fairlead(done, "watch", "istio", "default", "--wait", "--timeout", deadline()),
			kubectl("wait", "istiorevision/"+old, "--for=delete", "--timeout="+deadline()),
			// The status of the Istio counts it for a moment longer.
			{play: func(ctx context.Context) error {
				return d.quietly(ctx, "localkube", "kubectl", "wait", "istio/default", "--for=jsonpath={.status.revisions.total}=1", "--timeout="+deadline())
			}},
			kubectl("get", "istios,istiorevisions,istiorevisiontags"),
		}},
		{"A mistake is refused where it is made", []scene{
			{code: refused, command: []string{"localkube", "kubectl", "patch", "istio", "default", "--type=merge", "-p", `{"spec":{"version":"1.26"}}`}},
		}},
	}, nil
}
