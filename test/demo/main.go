// Command demo shows Fairlead at work on a Kubernetes of its own: `make demo`, `make demo-rollout`,
// `make demo-adoption`, `make demo-mesh`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fast := flag.Bool("fast", false, "tell the same story without the pauses that are there for people")
	story := flag.String("story", "migration", "which one: migration, rollout, adoption or mesh")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if err := run(ctx, *story, *fast); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// play is a story, and what the stage needs for it.
type play struct {
	// opening is the title of the clusters' entry, and sites are those clusters. The operator runs on the first of them.
	opening string
	sites   []site
	// title of the operator's entry.
	title string
	// prepare gives the operator's flags for this story.
	prepare func(context.Context, *demo) ([]string, error)
	// crd shows that the operator is at work.
	crd  string
	acts func(*demo) ([]act, error)
	// look is what a visitor might ask kubectl for.
	look string
}

var plays = map[string]play{"migration": migration, "rollout": rollout, "adoption": adoption, "mesh": mesh}

// site is a cluster, by the name of its directory, and the profile that localkube runs it with, if it is not the usual one.
type site struct{ name, profile string }

// Most stories have one cluster.
var alone = []site{{name: "kube"}}

const opening = "A real Kubernetes, on this machine only"

// demo is the stage: some clusters, and what runs beside them.
type demo struct {
	dir string
	// clusters have been started; kubeconfig is that of the first.
	clusters   []string
	kubeconfig string
	bin        string
	root       string
	fast       bool
	// traffic is what the mesh is called with, in the story that has one.
	traffic *traffic
}

func run(ctx context.Context, story string, fast bool) error {
	play, found := plays[story]
	if !found {
		return fmt.Errorf("there is no story %q", story)
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fairlead-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{dir: dir, kubeconfig: filepath.Join(dir, play.sites[0].name, "kubeconfig"), bin: filepath.Join(root, "bin"), root: root, fast: fast}

	d.title(play.opening)
	defer d.end()
	for _, s := range play.sites {
		if err := d.open(ctx, s); err != nil {
			return err
		}
	}

	d.title(play.title)
	flags, err := play.prepare(ctx, d)
	if err != nil {
		return err
	}
	operator, err := d.startOperator(ctx, flags)
	if err != nil {
		return err
	}
	defer operator.end()
	if err := d.tell(ctx, play); err != nil {
		if log, readErr := os.ReadFile(d.path("operator.log")); readErr == nil && ctx.Err() == nil {
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			err = fmt.Errorf("%w\nthe end of the operator's log:\n%s", err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
		return err
	}
	return d.linger(ctx, play.look)
}

// open starts a cluster.
func (d *demo) open(ctx context.Context, s site) error {
	d.clusters = append(d.clusters, s.name)
	command := []string{"localkube", "up", "--dir", d.path(s.name)}
	if s.profile != "" {
		command = append(command, "--profile", s.profile)
	}
	began := time.Now()
	if err := d.show(ctx, scene{command: append(command, "--until-exit-of", fmt.Sprint(os.Getpid()))}); err != nil {
		return err
	}
	wait.ClusterStarted(time.Since(began))
	return nil
}

// tell waits for the operator and tells the story.
func (d *demo) tell(ctx context.Context, p play) error {
	if err := d.quietly(ctx, "localkube", "kubectl", "wait", "--for=create", "crd/"+p.crd, "--timeout="+deadline()); err != nil {
		return err
	}
	if err := d.served(ctx); err != nil {
		return err
	}
	acts, err := p.acts(d)
	if err != nil {
		return err
	}
	for _, act := range acts {
		d.title(act.title)
		for _, scene := range act.scenes {
			if err := d.show(ctx, scene); err != nil {
				return err
			}
		}
	}
	return nil
}

// served waits until kubectl knows the kinds of all CRDs that there are, which is a moment after these are established.
func (d *demo) served(ctx context.Context) error {
	c, err := d.client()
	if err != nil {
		return err
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		crds := &metav1.PartialObjectMetadataList{}
		crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
		if err := c.List(ctx, crds); err != nil {
			return err
		}
		var kinds []string
		for i := range crds.Items {
			kinds = append(kinds, crds.Items[i].Name)
		}
		return d.quietly(ctx, "localkube", "kubectl", "get", strings.Join(kinds, ","))
	})
}

// deadline is how long a command waits for what must happen. It grows with the machine.
func deadline() string {
	return strings.TrimSuffix(max(time.Minute, wait.Deadline().Round(time.Minute)).String(), "0s")
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

func (d *demo) title(text string) {
	if term.IsTerminal(int(os.Stdout.Fd())) {
		text = "\033[1m" + text + "\033[0m"
	} else {
		text = "== " + text
	}
	fmt.Printf("\n%s\n\n", text)
}

// act is some scenes about one thing.
type act struct {
	title  string
	scenes []scene
}

// scene is a command of the show and how it should end.
type scene struct {
	code    int
	command []string
	// into is the file that gets what it prints, if that is not for the show.
	into string
	// play is what happens instead of a command.
	play func(context.Context) error
}

func kubectl(args ...string) scene {
	return scene{code: done, command: append([]string{"localkube", "kubectl"}, args...)}
}

func fairlead(code int, args ...string) scene {
	return scene{code: code, command: append([]string{"fairlead"}, args...)}
}

// Exit codes that are part of the show.
const (
	done       = 0
	refused    = 1
	unfinished = 3
)

// show runs a program of bin as a user would, with what it prints, and goes no
// further when it ends in another way than it should.
func (d *demo) show(ctx context.Context, s scene) error {
	if s.play != nil {
		return s.play(ctx)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, s.command[0]), s.command[1:]...)
	cmd.Dir, cmd.Env = d.root, append(os.Environ(), "KUBECONFIG="+d.kubeconfig)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	typed := s.command
	if s.into != "" {
		file, err := os.Create(s.into)
		if err != nil {
			return err
		}
		defer file.Close()
		typed, cmd.Stdout = append(slices.Clone(typed), ">", s.into), file
	}
	fmt.Println("$ " + d.typed(typed))
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	fmt.Println()
	if got := cmd.ProcessState.ExitCode(); got != s.code && ctx.Err() == nil {
		return fmt.Errorf("%s ended with %d instead of %d", strings.Join(s.command, " "), got, s.code)
	}
	return ctx.Err()
}

// quietly runs a program of bin that is not part of the show.
func (d *demo) quietly(ctx context.Context, command ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, command[0]), command[1:]...)
	cmd.Dir, cmd.Env = d.root, append(os.Environ(), "KUBECONFIG="+d.kubeconfig)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, output)
	}
	return nil
}

// typed is a command as it would be typed.
func (d *demo) typed(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		if strings.ContainsAny(word, "{}\"\\ ") {
			word = "'" + word + "'"
		}
		words[i] = strings.ReplaceAll(word, d.dir, "$DIR")
	}
	return strings.Join(words, " ")
}

func (d *demo) client() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{})
}

// process is the operator, beside us.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// startOperator applies the chart's RBAC and runs the operator as its
// ServiceAccount: what the chart does not allow, it cannot do here either.
func (d *demo) startOperator(ctx context.Context, flags []string) (*process, error) {
	const namespace = "fairlead-system"
	c, err := d.client()
	if err != nil {
		return nil, err
	}
	err = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil {
		return nil, err
	}
	release, err := chart.Render("fairlead", namespace, nil)
	if err != nil {
		return nil, err
	}
	if err := release.Apply(ctx, c, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"); err != nil {
		return nil, err
	}
	if err := awaitPermissions(ctx, c, "system:serviceaccount:"+namespace+":fairlead"); err != nil {
		return nil, err
	}
	token, err := release.Token(ctx, c, "fairlead")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := d.kubeconfigOf(token)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(d.path("operator.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// There is no other operator. No Deployment would restart this one if it lost its lease on a busy machine.
	args := append([]string{"operator", "--kubeconfig", kubeconfig, "--leader-elect=false"}, flags...)
	fmt.Println("$ " + d.typed(append([]string{"fairlead"}, args...)) + " &")
	// Not CommandContext: it is asked to stop, not killed.
	cmd := exec.Command(filepath.Join(d.bin, "fairlead"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches us first
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.ended) }()
	return p, nil
}

// awaitPermissions waits until the API server, which reads roles from a cache, grants the operator those of all passages. Without
// permission to install its CRDs the operator would end.
func awaitPermissions(ctx context.Context, c client.Client, user string) error {
	for _, p := range plays {
		asked := authorizationv1.ResourceAttributes{Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: p.crd}
		err := wait.Try(ctx, func(ctx context.Context) error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &asked}}
			if err := c.Create(ctx, review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				return fmt.Errorf("%s may not %s CRD %s: %s", user, asked.Verb, asked.Name, review.Status.Reason)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// kubeconfigOf is the administrator's, with a token instead of the certificate.
func (d *demo) kubeconfigOf(token string) (string, error) {
	config, err := clientcmd.LoadFromFile(d.kubeconfig)
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
	}
	path := d.path("operator.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// linger leaves the stage open to whoever watches.
func (d *demo) linger(ctx context.Context, look string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return nil
	}
	owner := "The cluster is yours"
	if len(d.clusters) > 1 {
		owner = "The clusters are yours"
	}
	d.title(owner + " until you press Ctrl-C")
	fmt.Printf("in another terminal, in this folder:\n  export KUBECONFIG=%s\n  bin/localkube kubectl get %s\n", d.kubeconfig, look)
	<-ctx.Done()
	return nil
}

func (d *demo) end() {
	fmt.Println("\nstopping what was started and deleting its data")
	for _, name := range d.clusters {
		cmd := exec.Command(filepath.Join(d.bin, "localkube"), "down", "--dir", d.path(name), "--delete")
		if output, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, output)
		}
	}
}
