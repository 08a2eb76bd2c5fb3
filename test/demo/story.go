package main

import (
	"context"
	"path/filepath"
)

// scene is a command of the show and how it should end.
type scene struct {
	code    int
	command []string
}

func kubectl(args ...string) scene {
	return scene{done, append([]string{"localkube", "kubectl"}, args...)}
}

func sample(name string) string { return filepath.Join("docs", "samples", name) }

// story brings up a control plane, moves a tag to the next version, and sees the old one go when nothing uses it.
func (d *demo) story(ctx context.Context) error {
	const old, next = "default-v1-24-0", "default-v1-26-0"
	rev := `custom-columns=POD:.metadata.name,REVISION:.metadata.annotations.istio\.io/rev`
	acts := []struct {
		title  string
		scenes []scene
	}{
		{"A control plane, and a stable name for it", []scene{
			kubectl("create", "namespace", "istio-system"),
			kubectl("apply", "-f", sample("istio.yaml"), "-f", sample("tag.yaml")),
			kubectl("wait", "istio/default", "--for=condition=Ready", "--timeout=60s"),
			kubectl("wait", "istiorevisiontag/default", "--for=condition=Reconciled", "--timeout=60s"),
			kubectl("get", "istios,istiorevisions,istiorevisiontags"),
		}},
		{"A workload, with its sidecar from a real istiod", []scene{
			{done, []string{"localkube", "istiod", "--dir", d.path("kube"), "--revision", old, "--wait", "1m"}},
			kubectl("apply", "-f", sample("shop.yaml")),
			kubectl("rollout", "status", "deployment/cart", "-n", "shop", "--timeout=60s"),
			kubectl("get", "pods", "-n", "shop", "-o", rev),
		}},
		{"The next version: what would happen", []scene{
			{unfinished, []string{"fairlead", "plan", "istio", "default", "--version", "v1.26.0", "--chart-dir", d.path("charts")}},
		}},
		{"It happens: new before old", []scene{
			kubectl("patch", "istio", "default", "--type=merge", "-p", `{"spec":{"version":"v1.26.0"}}`),
			{done, []string{"localkube", "istiod", "--dir", d.path("kube"), "--revision", next, "--wait", "1m"}},
			kubectl("wait", "istiorevisiontag/default", "--for=jsonpath={.status.istioRevision}="+next, "--timeout=60s"),
			kubectl("get", "istios,istiorevisions,istiorevisiontags"),
		}},
		{"Why is the old one still here?", []scene{
			{done, []string{"fairlead", "status", "istiorevision", old}},
		}},
		{"The workload restarts, and the old control plane goes by itself", []scene{
			kubectl("rollout", "restart", "deployment/cart", "-n", "shop"),
			kubectl("rollout", "status", "deployment/cart", "-n", "shop", "--timeout=60s"),
			kubectl("get", "pods", "-n", "shop", "-o", rev),
			kubectl("wait", "istiorevision/"+old, "--for=delete", "--timeout=60s"),
			{done, []string{"fairlead", "status", "istio", "default"}},
		}},
		{"A mistake is refused where it is made", []scene{
			{refused, []string{"localkube", "kubectl", "patch", "istio", "default", "--type=merge", "-p", `{"spec":{"version":"1.26"}}`}},
		}},
	}
	for _, act := range acts {
		d.title(act.title)
		for _, scene := range act.scenes {
			if err := d.show(ctx, scene.code, scene.command...); err != nil {
				return err
			}
		}
	}
	return nil
}
