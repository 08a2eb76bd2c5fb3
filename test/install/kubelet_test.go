package install_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// kubelet runs the containers of a namespace as processes of this machine, and puts them behind its Services.
type kubelet struct {
	t         testing.TB
	ctx       context.Context
	cluster   *cluster.Cluster
	client    client.Client
	registry  *registry
	namespace string
	dir       string
	// network is what the addresses of pods begin with.
	network string
	done    sync.WaitGroup

	mu     sync.Mutex
	pods   map[types.UID]*runningPod
	images map[string]*image
}

// runningPod is a pod from when it is scheduled until its container has ended.
type runningPod struct {
	container
	process *harness.Operator
	deleted context.CancelFunc
	ready   bool
}

func startKubelet(t testing.TB, c *cluster.Cluster, admin client.Client, from *registry, namespace string) *kubelet {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &kubelet{
		t: t, ctx: ctx, cluster: c, client: admin, registry: from, namespace: namespace, dir: t.TempDir(),
		network: fmt.Sprintf("127.%d.%d.", 64+rand.IntN(128), rand.IntN(256)),
		pods:    map[types.UID]*runningPod{}, images: map[string]*image{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
		k.done.Wait()
	})
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { k.see(object.(*corev1.Pod)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	return k
}

// see starts the container of a new pod, and ends that of a deleted one.
func (k *kubelet) see(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[pod.UID]
	if p == nil && pod.Spec.NodeName != "" {
		ctx, deleted := context.WithCancel(k.ctx)
		p = &runningPod{deleted: deleted}
		p.pod, p.address = pod.DeepCopy(), fmt.Sprint(k.network, len(k.pods)+1)
		k.pods[pod.UID] = p
		k.done.Go(func() {
			if err := k.live(ctx, p); err != nil && k.ctx.Err() == nil {
				k.t.Errorf("pod %s: %v", p.pod.Name, err)
			}
		})
	}
	if p != nil && pod.DeletionTimestamp != nil {
		p.deleted()
	}
}

// live is the life of a pod, whose context ends when the pod is deleted.
func (k *kubelet) live(ctx context.Context, p *runningPod) error {
	if err := k.start(p); err != nil {
		return err
	}
	defer p.process.Kill()
	err := wait.Try(ctx, func(ctx context.Context) error { return errors.Join(p.process.Alive(), p.probe(ctx)) })
	switch {
	case err == nil:
		k.t.Logf("pod %s is ready", p.pod.Name)
		if err := errors.Join(k.route(p, true), k.release(p, cluster.ReadyAfter)); err != nil {
			return err
		}
	case ctx.Err() == nil:
		return err
	}
	select {
	case <-p.process.Ended():
		return fmt.Errorf("its container ended by itself: %w", p.process.Alive())
	case <-ctx.Done():
	}
	if k.ctx.Err() != nil {
		return nil // the test is over
	}
	return k.end(p)
}

// start pulls the image of a pod, gives its container the files that it asks for, and runs it.
func (k *kubelet) start(p *runningPod) error {
	if len(p.pod.Spec.Containers) != 1 || len(p.pod.Spec.InitContainers) > 0 {
		return errors.New("it has other containers than the operator")
	}
	p.Container = p.pod.Spec.Containers[0]
	var err error
	if p.image, err = k.pull(p.Image); err != nil {
		return err
	}
	if p.server, err = url.Parse(k.cluster.Config().Host); err != nil {
		return err
	}
	p.root = filepath.Join(k.dir, p.pod.Name)
	if err := errors.Join(os.Mkdir(p.root, 0o755), os.Chmod(p.root, 0o755)); err != nil {
		return err
	}
	// What is mounted may come later than the pod.
	if err := wait.Try(k.ctx, func(ctx context.Context) error { return p.prepare(ctx, k.client) }); err != nil {
		return err
	}
	command, err := p.command()
	if err != nil {
		return err
	}
	process, err := harness.Start(command)
	if err != nil {
		return fmt.Errorf("run %s: %w", command, err)
	}
	process.KeepLogOnFailure(k.t)
	k.mu.Lock()
	defer k.mu.Unlock()
	p.process = process
	_, digest, _ := strings.Cut(p.Image, "@")
	k.t.Logf("pod %s runs %s of image %s as process %d, with the address %s", p.pod.Name, p.image.config.Config.Entrypoint[0], digest, p.process.Pid(), p.address)
	return nil
}

// pull gives an image from the cache of the node, or the registry.
func (k *kubelet) pull(reference string) (*image, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.images[reference] == nil {
		pulled, err := k.registry.pull(k.ctx, reference)
		if err != nil {
			return nil, err
		}
		k.images[reference] = pulled
	}
	return k.images[reference], nil
}

// end asks a container to end, and kills one that does not.
func (k *kubelet) end(p *runningPod) error {
	if err := k.route(p, false); err != nil {
		return err
	}
	if err := p.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.process.Ended():
	case <-time.After(wait.Deadline()):
		return errors.New("its container does not end")
	}
	if code := p.process.ExitCode(); code != 0 {
		return fmt.Errorf("its container ended with %d", code)
	}
	k.t.Logf("pod %s has ended", p.pod.Name)
	return k.release(p, cluster.TerminateAfter)
}

// release has KWOK report what was held.
func (k *kubelet) release(p *runningPod, annotation string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"0s"}}}`, annotation))
	return wait.Try(k.ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(k.client.Patch(ctx, p.pod.DeepCopy(), patch))
	})
}

// route notes whether a pod is ready, and puts one that is behind each Service that selects it.
func (k *kubelet) route(p *runningPod, ready bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.ready = ready
	var services corev1.ServiceList
	if err := k.client.List(k.ctx, &services, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	for _, service := range services.Items {
		for _, port := range service.Spec.Ports {
			name := fmt.Sprintf("%s/%s:%d", service.Namespace, service.Name, port.Port)
			args := []string{"serve", "--dir", k.cluster.Dir, "--service", name, "--remove"}
			for _, other := range k.pods {
				if other.ready && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(other.pod.Labels)) {
					args = append(args[:len(args)-1], "--to", fmt.Sprintf("%s:%d", other.address, other.port(port.TargetPort)))
					break
				}
			}
			if _, err := cluster.Localkube(args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// running are the images of the containers that run.
func (k *kubelet) running() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var images []string
	for _, p := range k.pods {
		if p.process == nil {
			continue
		}
		select {
		case <-p.process.Ended():
		default:
			images = append(images, p.Image)
		}
	}
	slices.Sort(images)
	return images
}
