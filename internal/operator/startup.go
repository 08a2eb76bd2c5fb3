package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/kube"
)

func startBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Cap: 30 * time.Second, Steps: 1 << 30}
}

// errNotYet marks a failure that may pass without a restart of the operator.
type errNotYet struct{ error }

func (e errNotYet) Unwrap() error { return e.error }

// retryTransient retries until success, the end of the context, or an error that is not transient.
func retryTransient(ctx context.Context, log logr.Logger, backoff wait.Backoff, what string, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !isTransient(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		delay := backoff.Step()
		log.Error(err, what+" failed, will be tried again", "after", delay.Round(time.Millisecond).String())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(delay):
		}
	}
}

// isTransient tells failures of the network or server from those of configuration and permission.
func isTransient(err error) bool {
	return errors.As(err, new(errNotYet)) || errors.As(err, new(net.Error)) || errors.As(err, new(*url.Error)) ||
		apierrors.IsTooManyRequests(err) || kube.IsUnavailable(err)
}

func reachServer(config *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error {
		config := rest.CopyConfig(config)
		config.Timeout = 10 * time.Second
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return err
		}
		if _, err := client.ServerVersion(); err != nil {
			return fmt.Errorf("API server %s: %w", config.Host, err)
		}
		return nil
	}
}

// installCRDs installs those of passages, and takes those over of passages that are.
func installCRDs(config *rest.Config, passages []Passage, takeOver []string, hooks *webhooks, log logr.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		install := func(passages []Passage, takeOver bool) error {
			if len(passages) == 0 {
				return nil
			}
			options := crds.Options{Names: crdsOf(passages), TakeOver: takeOver, Log: log}
			if hooks != nil {
				options.Webhook = hooks.conversion
			}
			_, err := crds.Install(ctx, config, options)
			return err
		}
		isTakenOver := func(p Passage) bool { return slices.Contains(takeOver, p.Name) }
		own := slices.DeleteFunc(slices.Clone(passages), isTakenOver)
		others := slices.DeleteFunc(slices.Clone(passages), func(p Passage) bool { return !isTakenOver(p) })
		return errors.Join(install(own, false), install(others, true))
	}
}

// kindsServed uses discovery, which needs no permission, so that the operator needs none on CRDs when it does not install
// them.
func kindsServed(mapper meta.RESTMapper, scheme *runtime.Scheme, kinds []client.Object) func(context.Context) error {
	return func(context.Context) error {
		for _, kind := range kinds {
			gvk, err := apiutil.GVKForObject(kind, scheme)
			if err != nil {
				return err
			}
			_, err = mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			if meta.IsNoMatchError(err) {
				return errNotYet{fmt.Errorf("%s is not served: install the CRDs with `fairlead crds install`, "+
					"or start the operator with --install-crds", gvk.GroupKind())}
			}
			if err != nil {
				return fmt.Errorf("look up %s: %w", gvk.GroupKind(), err)
			}
		}
		return nil
	}
}
