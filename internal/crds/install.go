package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Options of an install.
type Options struct {
	// Names of the CRDs to install; nil stands for all.
	Names []string
	// CRDs, if set, are installed instead of Fairlead's own.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// TakeOver adopts CRDs that another owner has installed.
	TakeOver bool
	// Webhook converts the objects of CRDs whose versions differ. Without one, conversion is not changed.
	Webhook *Webhook
	// Timeout bounds the whole install, Established included. The default is a minute.
	Timeout time.Duration
	Log     logr.Logger
}

// Result of the installation of one CRD.
type Result struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"`
}

// Install installs and updates Fairlead's CRDs and waits until all of them are served. It writes only changes. A CRD that cannot
// be installed does not block the others: there is a result for each, and the error joins all errors.
func Install(ctx context.Context, cfg *rest.Config, opts Options) ([]Result, error) {
	crds, err := selectCRDs(opts.CRDs, opts.Names)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 {
		// The default would make a dozen CRDs queue behind each other.
		cfg.QPS = -1
	}
	in, err := newInstaller(cfg, opts)
	if err != nil {
		return nil, err
	}
	jobs := make([]*job, len(crds))
	for i, crd := range crds {
		jobs[i] = &job{want: crd, result: Result{Name: crd.Name}}
	}

	bounded, cancel := context.WithTimeout(ctx, cmp.Or(opts.Timeout, time.Minute))
	defer cancel()
	in.run(bounded, jobs)

	results := make([]Result, len(jobs))
	for i, job := range jobs {
		results[i] = job.result
		logResult(opts.Log, job.result)
	}
	if ctx.Err() != nil {
		return results, fmt.Errorf("install CRDs: %w", context.Cause(ctx))
	}
	return results, failures(jobs)
}

// installer checks CRDs until each is installed or cannot be. Another installer may do the same at the same time.
type installer struct {
	server   string
	crds     apiextensions.CustomResourceDefinitionInterface
	services corev1.ServicesGetter
	takeOver bool
	webhook  *Webhook
}

func newInstaller(cfg *rest.Config, opts Options) (*installer, error) {
	client, err := apiextensions.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to install CRDs: %w", err)
	}
	services, err := corev1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to install CRDs: %w", err)
	}
	return &installer{
		server: cfg.Host, crds: client.CustomResourceDefinitions(), services: services,
		takeOver: opts.TakeOver, webhook: opts.Webhook,
	}, nil
}

func (in *installer) run(ctx context.Context, jobs []*job) {
	pause := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	for open := slices.Clone(jobs); ; {
		for _, job := range open {
			if err := in.advance(ctx, job); err != nil {
				if ctx.Err() != nil && job.waiting != "" {
					expireAll(open, ctx.Err())
				} else {
					abortAll(open, err)
				}
				return
			}
		}
		if open = slices.DeleteFunc(open, func(j *job) bool { return j.done }); len(open) == 0 {
			return
		}
		select {
		case <-time.After(pause.Step()):
		case <-ctx.Done():
			expireAll(open, ctx.Err())
			return
		}
	}
}

// expireAll ends all open jobs because time is up, and says what each waited for.
func expireAll(jobs []*job, cause error) {
	for _, job := range jobs {
		if !job.done {
			job.end(fmt.Errorf("CRD %s is not ready: %s: %w", job.want.Name, cmp.Or(job.waiting, "the CRD was not read"), cause))
		}
	}
}

// abortAll ends all open jobs because of one error, which is reported once.
func abortAll(jobs []*job, err error) {
	for _, job := range jobs {
		if !job.done {
			job.end(err)
			err = nil
		}
	}
}

// failures joins the errors of the jobs, and those about permissions into one for each verb.
func failures(jobs []*job) error {
	var errs []error
	denied := map[string]*NotPermittedError{}
	for _, job := range jobs {
		if refusal, ok := job.err.(*NotPermittedError); ok {
			if first := denied[refusal.Verb]; first != nil {
				first.CRDs = append(first.CRDs, refusal.CRDs...)
				continue
			}
			denied[refusal.Verb] = refusal
		}
		if job.err != nil {
			errs = append(errs, job.err)
		}
	}
	return errors.Join(errs...)
}

func logResult(log logr.Logger, r Result) {
	level := 0
	if r.Outcome == Unchanged {
		level = 1
	}
	log.V(level).Info("custom resource definition", "name", r.Name, "outcome", r.Outcome, "message", r.Message)
}
