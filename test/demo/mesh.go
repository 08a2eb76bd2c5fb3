package main

import (
	"context"
	"fmt"
)

// mesh takes a mesh of two zones from service tags to MeshServices, while it is called.
var mesh = play{
	opening: opening, sites: alone,
	title: "The operator of zone east, with the chart's permissions and no others; proxies get their configuration from it",
	prepare: func(_ context.Context, d *demo) ([]string, error) {
		var err error
		if d.traffic, err = newTraffic(); err != nil {
			return nil, err
		}
		return []string{
			"--passages", "meshservice", "--mesh-zone", east, "--mesh-bind-address", "127.0.0.1:0", "--mesh-insecure", "--mesh-switch-timeout", deadline(),
		}, nil
	},
	crd:  "meshtcproutes.kuma.io",
	acts: meshActs,
	look: "meshes,meshservices,dataplanes -A",
}

const (
	meshSamples = "docs/samples/mesh/"
	policies    = meshSamples + "policies.yaml"
)

// The zones of the story.
const (
	east = "east"
	west = "west"
)

// ofMesh is a command of Fairlead about it.
func ofMesh(code int, verb string, args ...string) scene {
	return fairlead(code, append([]string{verb, "mesh", "default"}, args...)...)
}

func setMode(mode string) []scene {
	return []scene{
		kubectl("patch", "mesh", "default", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"meshServices":%q}}`, mode)),
		kubectl("wait", "mesh/default", "--for=jsonpath={.status.mode}="+mode, "--timeout="+deadline()),
	}
}

func consumer(name string) string { return "shop/Deployment/" + name }

func meshActs(d *demo) ([]act, error) {
	t := d.traffic
	if err := t.writeManifests(d); err != nil {
		return nil, err
	}
	answers := func(consumer string, zones ...string) scene {
		return scene{play: func(ctx context.Context) error { return t.answers(ctx, consumer, zones) }}
	}
	settled := ofMesh(done, "watch", "--wait", "--timeout", deadline())
	services := kubectl("get", "meshservices", "-A")
	converted := fairlead(done, "convert", "-f", policies)
	converted.into = d.path("policies.yaml")
	explained := scene{play: func(ctx context.Context) error {
		return d.show(ctx, fairlead(done, "status", "dataplane", t.pods["cart"], "-n", "shop", "--policies"))
	}}
	return []act{
		{"A shop in two zones: its backend runs in east and in west, and no pod knows of MeshServices", []scene{
			kubectl("apply", "-f", meshSamples+"mesh.yaml", "-f", d.path("west.yaml"), "-f", d.path("shop.yaml"), "-f", policies),
			{play: func(ctx context.Context) error { return t.run(ctx, d) }},
			kubectl("wait", "mesh/default", "--for=condition=Served", "--timeout="+deadline()),
			kubectl("get", "dataplanes", "-n", "shop"),
		}},
		{"cart and checkout call " + target + " 50 times a second, and both zones answer", []scene{
			{play: func(ctx context.Context) error { return t.call(ctx, d) }},
			answers("cart", east, west), answers("checkout", east, west),
		}},
		{"What would MeshServices change? Nothing is written to find out", []scene{
			ofMesh(unfinished, "plan", "--mode", "Everywhere"),
		}},
		{"Policies that were written for the tag get an entry for the MeshService beside it; the route gets one by hand", []scene{
			converted,
			kubectl("apply", "-f", d.path("policies.yaml"), "-f", meshSamples+"route.yaml"),
		}},
		{"MeshServices are made, and nobody is sent to one who does not ask for it", append(setMode("ReachableBackendRefs"),
			kubectl("wait", "meshservice/backend", "-n", "shop", "--for=create", "--timeout="+deadline()),
			services,
			answers("cart", east, west), answers("checkout", east, west),
		)},
		{"One consumer first: no pod restarts, and its calls stay in its zone from now on", []scene{
			ofMesh(done, "migrate", "--consumers", consumer("cart"), "--yes"),
			settled,
			answers("cart", east), answers("checkout", east, west),
			explained,
		}},
		{"Then all of them, one at a time", []scene{
			ofMesh(done, "migrate", "--batch-size", "1", "--yes"),
			settled, ofMesh(done, "status"),
			answers("cart", east), answers("checkout", east),
		}},
		{"A change of mind about one of them", []scene{
			ofMesh(done, "migrate", "--revert", "--consumers", consumer("checkout"), "--yes"),
			settled,
			answers("cart", east), answers("checkout", east, west),
		}},
		{"At last the old way is turned off, for everybody", append(append([]scene{
			ofMesh(unfinished, "plan", "--mode", "Exclusive"),
		}, setMode("Exclusive")...),
			answers("cart", east), answers("checkout", east),
		)},
		{"A mistake is refused where it is made", []scene{
			{code: refused, command: setMode("Sometimes")[0].command},
		}},
		{"Nobody has noticed", []scene{{play: t.end}}},
	}, nil
}
