package main

import (
	"context"
	"fmt"
)

// adoption brings what runs in two clusters under one policy of a hub, and lets it go again.
var adoption = play{
	opening: "A hub, where nothing runs, and two clusters: real Kubernetes, on this machine only",
	sites:   []site{{name: "hub", profile: "hub"}, {name: "east"}, {name: "west"}},
	title:   "The operator on the hub, with the chart's permissions and no others",
	prepare: func(context.Context, *demo) ([]string, error) {
		return []string{"--passages", "adoption"}, nil
	},
	crd:  "clusters.cluster.karmada.io",
	acts: adoptionActs,
	look: "pp,rb -A",
}

const shop = "docs/samples/adoption/shop.yaml"

// policy is what `fairlead adopt` writes.
const policy = "adopted-east"

// ofPolicy is a command of Fairlead about it.
func ofPolicy(code int, verb string, args ...string) scene {
	return fairlead(code, append([]string{verb, "pp", policy, "-n", "shop"}, args...)...)
}

func patchPolicy(spec string) scene {
	return kubectl("patch", "pp", policy, "-n", "shop", "--type=merge", "-p", fmt.Sprintf(`{"spec":{%s}}`, spec))
}

func adoptionActs(d *demo) ([]act, error) {
	in := func(cluster string, args ...string) scene {
		return kubectl(append([]string{"--kubeconfig", d.path(cluster + "/kubeconfig"), "-n", "shop"}, args...)...)
	}
	run := func(cluster string) scene { return in(cluster, "apply", "-f", shop) }
	runs := func(cluster string) scene {
		return in(cluster, "wait", "deployments", "--all", "--for=condition=Available", "--timeout="+deadline())
	}
	generations := func(cluster string) scene {
		return in(cluster, "get", "deployments,services", "-o",
			`custom-columns=KIND:.kind,NAME:.metadata.name,GENERATION:.metadata.generation,REPLICAS:.spec.replicas,MANAGED:.metadata.labels.karmada\.io/managed`)
	}
	pods := func(cluster string) scene {
		return in(cluster, "get", "pods", "-o", "custom-columns=POD:.metadata.name,UID:.metadata.uid,STATUS:.status.phase")
	}
	environment := in("west", "get", "deployment", "cart", "-o", "custom-columns=NAME:.metadata.name,ENVIRONMENT:.spec.template.spec.containers[0].env")
	join := func(cluster string) scene {
		return fairlead(done, "join", cluster, "--member-kubeconfig", d.path(cluster+"/kubeconfig"))
	}
	unjoin := func(cluster string) scene {
		return fairlead(done, "unjoin", cluster, "--member-kubeconfig", d.path(cluster+"/kubeconfig"), "--yes", "--timeout", deadline())
	}
	clusters := fairlead(done, "clusters")
	draft := fairlead(done, "adopt", "--cluster", "east", "-n", "shop", "--with-dependencies", "-o", "yaml")
	draft.into = d.path("adopted.yaml")
	settled := ofPolicy(done, "watch", "--wait", "--timeout", deadline())
	reported := kubectl("wait", "pp/"+policy, "-n", "shop", "--for=condition=Ready", "--timeout="+deadline())
	return []act{
		{"Both run a shop; in west somebody has switched debugging on by hand", []scene{
			run("east"), run("west"),
			in("west", "set", "env", "deployment/cart", "DEBUG=1"),
			runs("east"), in("west", "rollout", "status", "deployment/cart", "--timeout="+deadline()),
			generations("east"), pods("east"),
		}},
		{"They join the hub: that touches nothing that they run", []scene{
			join("east"), join("west"),
			kubectl("wait", "clusters.cluster.karmada.io", "--all", "--for=condition=Ready", "--timeout="+deadline()),
			clusters,
		}},
		{"What would become of what runs in east? Nothing is written to find out", []scene{
			draft,
			ofPolicy(unfinished, "plan", "-f", d.path("adopted.yaml")),
		}},
		{"It is adopted: templates and one policy, on the hub", []scene{
			fairlead(done, "adopt", "--cluster", "east", "-n", "shop", "--with-dependencies", "--yes"),
			settled, reported,
			kubectl("get", "pp,rb", "-n", "shop"),
		}},
		{"The hub manages them now. Same generations, same pods", []scene{
			generations("east"), pods("east"),
		}},
		{"West, too, by the same policy. With Abort, what it runs already is left alone, and said so", []scene{
			patchPolicy(`"conflictResolution":"Abort","placement":{"clusterAffinity":{"clusterNames":["east","west"]}}`),
			kubectl("wait", "pp/"+policy, "-n", "shop", "--timeout="+deadline(), `--for=jsonpath={.status.conflicting}=4`),
			ofPolicy(refused, "status"),
		}},
		{"With Overwrite it would be taken over, and cart would lose what the template does not say", []scene{
			ofPolicy(done, "pause"),
			patchPolicy(`"conflictResolution":"Overwrite"`),
			ofPolicy(unfinished, "plan"),
		}},
		{"So be it", []scene{
			ofPolicy(done, "resume"),
			settled, environment, clusters,
		}},
		{"From now on the hub has the say: an edit in a cluster is put back", []scene{
			in("west", "scale", "deployment/checkout", "--replicas=0"),
			in("west", "wait", "deployment/checkout", "--for=jsonpath={.spec.replicas}=2", "--timeout="+deadline()),
			in("west", "delete", "service", "cart"),
			in("west", "wait", "service/cart", "--for=create", "--timeout="+deadline()),
		}},
		{"A change of mind: everything is let go, and what was there before is put back", []scene{
			ofPolicy(done, "abort", "--yes"),
			settled, environment,
		}},
		{"They leave the hub. Everything runs on, and no mark is left", []scene{
			unjoin("east"), unjoin("west"),
			clusters,
			generations("east"), pods("east"),
			in("west", "get", "all", "-l", "karmada.io/managed"),
		}},
		{"A mistake is refused where it is made", []scene{
			{code: refused, command: patchPolicy(`"conflictResolution":"Hope"`).command},
		}},
	}, nil
}
