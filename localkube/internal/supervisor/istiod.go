package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// IstiodBinary is built from a module of its own and lies beside localkube.
const IstiodBinary = "localkube-istiod"

// istiod runs one revision's control plane once the revision is installed.
type istiod struct {
	clusterdir.Istiod
	dir      clusterdir.Dir
	onChange func()

	mu      sync.Mutex
	process *child
	https   int    // port that the process serves its webhooks on
	waiting string // for what, while there is no process
	gone    bool
}

func (i *istiod) name() string { return "istiod-" + i.Revision }

// suffix is what Istio's charts put behind their objects' names; the default
// revision has none.
func (i *istiod) suffix() string {
	if i.Revision == "default" {
		return ""
	}
	return "-" + i.Revision
}

func (i *istiod) injector() string { return "istio-sidecar-injector" + i.suffix() }

func (i *istiod) webhook() string {
	if i.Namespace == "istio-system" {
		return i.injector()
	}
	return i.injector() + "-" + i.Namespace
}

// installed says what of the revision is still missing. Started before these
// exist, istiod runs but never writes its certificate into the webhook.
func (i *istiod) installed(ctx context.Context, client kubernetes.Interface) (missing string, err error) {
	_, err = client.CoreV1().ConfigMaps(i.Namespace).Get(ctx, i.injector(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("ConfigMap %s/%s of the revision's chart", i.Namespace, i.injector()), nil
	}
	if err != nil {
		return "", err
	}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, i.webhook(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("MutatingWebhookConfiguration %s of the revision's chart", i.webhook()), nil
	}
	return "", err
}

// advance starts the process as soon as it can be.
func (i *istiod) advance(ctx context.Context, client kubernetes.Interface) error {
	if process, _ := i.started(); process != nil {
		return nil
	}
	missing, err := i.installed(ctx, client)
	if err != nil {
		return err
	}
	begun, err := i.begin(missing)
	if begun {
		i.onChange() // which reads the record: not under its lock
	}
	return err
}

func (i *istiod) begin(missing string) (begun bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = missing
	if i.process != nil || i.gone || missing != "" {
		return false, nil
	}
	process, https, err := i.newProcess()
	if err != nil {
		return false, err
	}
	if err := process.begin(); err != nil {
		return false, err
	}
	i.process, i.https = process, https
	return true, nil
}

func (i *istiod) newProcess() (process *child, https int, err error) {
	args := []string{"discovery", "--kubeconfig=" + i.dir.Kubeconfig(), "--ctrlz_port=0"}
	taken := map[int]bool{}
	for _, flag := range []string{"httpAddr", "httpsAddr", "grpcAddr", "secureGRPCAddr", "monitoringAddr"} {
		port, err := chooseFree(taken, isFree)
		if err != nil {
			return nil, 0, err
		}
		taken[port] = true
		args = append(args, fmt.Sprintf("--%s=127.0.0.1:%d", flag, port))
		if flag == "httpsAddr" {
			https = port
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	work := i.dir.Work(i.name())
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, 0, err
	}
	return newChild(spec{
		name: i.name(),
		path: filepath.Join(filepath.Dir(self), IstiodBinary),
		dir:  work,
		log:  i.dir.Log(i.name()),
		args: args,
		env: []string{
			"REVISION=" + i.Revision,
			"PILOT_CERT_PROVIDER=istiod",
			"POD_NAMESPACE=" + i.Namespace,
			"POD_NAME=" + i.name() + "-0",
			"SERVICE_ACCOUNT=istiod" + i.suffix(),
			"CLUSTER_ID=Kubernetes",
			"INJECTION_WEBHOOK_CONFIG_NAME=" + i.webhook(),
			"VALIDATION_WEBHOOK_CONFIG_NAME=istio-validator" + i.suffix() + "-" + i.Namespace,
		},
	}, i.onChange), https, nil
}

func (i *istiod) record() clusterdir.Record {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.process != nil {
		return i.process.Record()
	}
	return clusterdir.Record{
		Name: i.name(), Log: i.dir.Log(i.name()), State: clusterdir.Waiting, Detail: "for " + i.waiting,
	}
}

// started returns the process, if there is one, and the port of its webhooks.
func (i *istiod) started() (process *child, https int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.process, i.https
}

func (i *istiod) serves() []clusterdir.Serve {
	process, https := i.started()
	if process == nil {
		return nil
	}
	return []clusterdir.Serve{{
		Namespace: i.Namespace, Service: "istiod" + i.suffix(), Port: 443, To: fmt.Sprintf("127.0.0.1:%d", https),
	}}
}

// injects proves that a pod created now would get its sidecar: the process
// serves its webhook, and the cluster trusts it.
func (i *istiod) injects(ctx context.Context, client kubernetes.Interface) error {
	if r := i.record(); r.State == clusterdir.Waiting {
		return errors.New("it waits " + r.Detail)
	}
	_, https := i.started()
	webhook, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, i.webhook(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, w := range webhook.Webhooks {
		if len(w.ClientConfig.CABundle) == 0 {
			return fmt.Errorf("webhook %s of %s has no caBundle yet", w.Name, i.webhook())
		}
	}
	return answersTLS(ctx, https)
}

func answersTLS(ctx context.Context, port int) error {
	// Only whether it serves is asked here; the API server verifies the certificate.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/httpsReady", port), nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// revive lets a dead one be started again.
func (i *istiod) revive() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.process != nil && !i.process.alive() {
		i.process = nil
	}
}

// forget keeps it from being started while the cluster stops.
func (i *istiod) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gone = true
}

// watchIstiods starts each revision's control plane when the revision appears.
func (s *Supervisor) watchIstiods(ctx context.Context) {
	for _, w := range s.currentSettings().Istiods {
		s.addIstiod(w)
	}
	complaints := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
		all := s.listIstiods()
		if len(all) == 0 {
			continue
		}
		client, err := s.client()
		if err != nil {
			continue
		}
		for _, i := range all {
			complaint := errorText(i.advance(ctx, client))
			if complaint != "" && complaint != complaints[i.Revision] && ctx.Err() == nil {
				s.log.Warn("start istiod", "revision", i.Revision, "err", complaint)
			}
			complaints[i.Revision] = complaint
		}
	}
}

// reviveIstiods starts those again that have died.
func (s *Supervisor) reviveIstiods(ctx context.Context, client kubernetes.Interface, progress Progress) error {
	for _, i := range s.listIstiods() {
		before := i.record()
		i.revive()
		if err := i.advance(ctx, client); err != nil {
			return fmt.Errorf("start istiod of revision %s: %w", i.Revision, err)
		}
		if before.State == clusterdir.Dead {
			progress.Done(startedText(before))
		}
	}
	return nil
}

func (s *Supervisor) addIstiod(want clusterdir.Istiod) *istiod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.istiods[want.Revision]; known != nil {
		return known
	}
	i := &istiod{Istiod: want, dir: s.dir, onChange: s.saveRecords, waiting: "the API server"}
	s.istiods[want.Revision] = i
	return i
}

func (s *Supervisor) listIstiods() []*istiod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*istiod
	for _, want := range s.settings.Istiods {
		if i := s.istiods[want.Revision]; i != nil {
			all = append(all, i)
		}
	}
	return all
}

func (s *Supervisor) istiodChildren() []*child {
	var children []*child
	for _, i := range s.listIstiods() {
		if process, _ := i.started(); process != nil {
			children = append(children, process)
		}
	}
	return children
}
