package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	rate = 50
	// target is what consumers call, before the switch and after it.
	target = "backend.shop.svc.cluster.local:80"
	// byHand is a scheduler that there is not: the pods run here.
	byHand = "by-hand"
)

// traffic is a backend in two zones, and those who call it.
type traffic struct {
	zones   map[string]*callers.Echo
	pods    map[string]string
	callers map[string]*callers.Caller
	backend *grpc.ClientConn
}

func newTraffic() (*traffic, error) {
	var err error
	t := &traffic{zones: map[string]*callers.Echo{}, pods: map[string]string{}, callers: map[string]*callers.Caller{}}
	for zone, address := range map[string]string{east: "127.0.0.2:0", west: "127.0.0.3:0"} {
		if t.zones[zone], err = callers.StartEcho(address, zone); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// writeManifests are the samples, of pods that run here.
func (t *traffic) writeManifests(d *demo) error {
	local, remote := t.zones[east].Address(), t.zones[west].Address()
	for name, replace := range map[string]*strings.Replacer{
		"shop.yaml": strings.NewReplacer(
			"containerPort: 8080", "containerPort: "+strconv.Itoa(local.Port),
			"      containers:", "      schedulerName: "+byHand+"\n      containers:"),
		"west.yaml": strings.NewReplacer("192.0.2.10", remote.IP.String(), "10001", strconv.Itoa(remote.Port)),
	} {
		sample, err := os.ReadFile(filepath.Join(d.root, meshSamples, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.path(name), []byte(replace.Replace(string(sample))), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run plays the node of the pods, and waits until each has its Dataplane.
func (t *traffic) run(ctx context.Context, d *demo) error {
	c, err := d.client()
	if err != nil {
		return err
	}
	addresses := map[string]string{"backend": t.zones[east].Address().IP.String(), "cart": "127.0.0.4", "checkout": "127.0.0.5"}
	err = wait.Try(ctx, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace("shop")); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			app := pod.Labels["app"]
			if t.pods[app] != "" {
				continue
			}
			pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, addresses[app]
			pod.Status.PodIPs = []corev1.PodIP{{IP: addresses[app]}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := c.Status().Update(ctx, pod); err != nil {
				return err
			}
			t.pods[app] = pod.Name
		}
		if len(t.pods) < len(addresses) {
			return fmt.Errorf("only %d pods in namespace shop", len(t.pods))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, pod := range t.pods {
		if err := d.quietly(ctx, "localkube", "kubectl", "wait", "--for=create", "dataplane/"+pod, "-n", "shop", "--timeout="+deadline()); err != nil {
			return err
		}
	}
	return nil
}

// serving is the line of the operator's log that tells where proxies get their configuration.
var serving = regexp.MustCompile(`"msg":"serving proxies".*"address":"([^"]+)"`)

// call starts the calls, which go on until the end.
func (t *traffic) call(ctx context.Context, d *demo) error {
	var server string
	err := wait.Try(ctx, func(context.Context) error {
		log, err := os.ReadFile(d.path("operator.log"))
		if found := serving.FindSubmatch(log); found != nil {
			server = string(found[1])
			return nil
		}
		return errors.Join(err, errors.New("the operator serves no proxies"))
	})
	if err != nil {
		return err
	}
	bootstrap := func(app string) callers.Bootstrap {
		return callers.Bootstrap{Server: server, Node: "default." + t.pods[app] + ".shop"}
	}
	for _, consumer := range []string{"cart", "checkout"} {
		caller, err := callers.Start(target, bootstrap(consumer), rate)
		if err != nil {
			return err
		}
		t.callers[consumer] = caller
	}
	// The backend is connected as well, for a migration waits for every consumer to acknowledge what it is sent.
	if t.backend, err = callers.Dial(target, bootstrap("backend")); err != nil {
		return err
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		_, err := callers.Zone(ctx, t.backend)
		return err
	})
}

// answers waits until the latest calls of a consumer are answered in these zones and in no other, and tells of them.
func (t *traffic) answers(ctx context.Context, consumer string, zones []string) error {
	caller := t.callers[consumer]
	from := caller.Tally()
	// The story stops where it happened, and not at its end.
	if from.Failed > 0 {
		return fmt.Errorf("calls of %s have failed: %s", consumer, from)
	}
	return wait.Try(ctx, func(context.Context) error {
		tally := caller.Tally()
		latest := tally.Since(from)
		if latest.Total() < rate {
			return fmt.Errorf("%s makes no calls", consumer)
		}
		from = tally
		for _, zone := range zones {
			if latest.Answered[zone] == 0 {
				return fmt.Errorf("no call of %s is answered in %s: %s", consumer, zone, latest)
			}
		}
		if len(latest.Answered) != len(zones) {
			return fmt.Errorf("calls of %s are answered elsewhere than in %q: %s", consumer, zones, latest)
		}
		fmt.Printf("%d calls of %s: %s\n\n", latest.Total(), consumer, latest)
		return nil
	})
}

// end counts all calls that there were.
func (t *traffic) end(context.Context) error {
	answered, failed, first := map[string]int{}, 0, ""
	for _, caller := range t.callers {
		tally := caller.Stop()
		failed += tally.Failed
		first = max(first, tally.FirstError)
		for zone, n := range tally.Answered {
			answered[zone] += n
		}
	}
	total := failed + answered[east] + answered[west]
	outcome := "none failed"
	if failed > 0 {
		outcome = fmt.Sprintf("%d failed, the first: %s", failed, first)
	}
	fmt.Printf("%d calls of %s at %d a second: %d answered in %s, %d in %s, %s\n",
		total, target, len(t.callers)*rate, answered[east], east, answered[west], west, outcome)
	if failed > 0 || slices.Contains([]int{answered[east], answered[west]}, 0) {
		return fmt.Errorf("calls have failed, or only one zone has answered: %s", outcome)
	}
	return nil
}
