package release

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	releaser "helm.sh/helm/v4/pkg/release"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// session uses Helm for the releases of a namespace until its context ends.
type session struct {
	*Manager
	ctx        context.Context
	namespace  string
	config     *rest.Config
	logHandler slog.Handler
	records    *recordStore
	store      *storage.Storage
}

func (m *Manager) session(ctx context.Context, namespace string) (*session, error) {
	config, err := m.configFor(ctx)
	if err != nil {
		return nil, err
	}
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	s := &session{Manager: m, ctx: ctx, namespace: namespace, config: config}
	s.logHandler = debugHandler{logr.ToSlogHandler(m.log.V(1))}
	s.records = &recordStore{Secrets: driver.NewSecrets(client.Secrets(namespace))}
	s.records.SetLogger(s.logHandler)
	s.store = storage.Init(s.records)
	return s, nil
}

// recordStore keeps the error of a record update, which Helm ignores.
type recordStore struct {
	*driver.Secrets
	failed error
}

func (l *recordStore) Update(key string, record releaser.Releaser) error {
	err := l.Secrets.Update(key, record)
	l.failed = cmp.Or(l.failed, err)
	return err
}

// helm configures Helm for an action that deletes the known objects that are not part of the release.
func (s *session) helm(known []*unstructured.Unstructured) (*action.Configuration, error) {
	capabilities, err := s.capabilities(s.ctx)
	if err != nil {
		return nil, err
	}
	client := kube.New(restGetter{s.config, s.mapper, s.namespace})
	client.Namespace = s.namespace
	client.SetLogger(s.logHandler)
	config := action.NewConfiguration(action.ConfigurationSetLogger(s.logHandler))
	config.Capabilities = capabilities
	config.Releases = s.store
	config.KubeClient = &writer{Client: client, session: s, known: known}
	return config, nil
}

// helmInstall makes the first record of a release.
func (s *session) helmInstall(spec Spec, objects, known []*unstructured.Unstructured) (*helm.Release, error) {
	config, err := s.helm(known)
	if err != nil {
		return nil, err
	}
	s.count(opInstall)
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.Labels = spec.Name, spec.Namespace, spec.labels()
	install.PostRenderer = rendered(objects)
	install.TakeOwnership, install.ForceConflicts = true, true // ownership has been checked before
	install.DisableHooks, install.DisableOpenAPIValidation, install.SkipSchemaValidation = true, true, true
	install.WaitStrategy = kube.HookOnlyStrategy
	made, err := install.RunWithContext(context.Background(), recordedChart(spec), spec.Values)
	return s.outcome(made, err)
}

// helmUpgrade makes another record of a release.
func (s *session) helmUpgrade(spec Spec, objects, known []*unstructured.Unstructured) (*helm.Release, error) {
	config, err := s.helm(known)
	if err != nil {
		return nil, err
	}
	s.count(opUpgrade)
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.Labels = spec.Namespace, spec.labels()
	if spec.Owner == nil {
		upgrade.Labels[v1.LabelOwner] = "null" // removes the label of the last record
	}
	upgrade.PostRenderer = rendered(objects)
	upgrade.ServerSideApply, upgrade.ResetValues = "true", true
	upgrade.TakeOwnership, upgrade.ForceConflicts = true, true
	upgrade.DisableHooks, upgrade.DisableOpenAPIValidation, upgrade.SkipSchemaValidation = true, true, true
	upgrade.WaitStrategy = kube.HookOnlyStrategy
	made, err := upgrade.RunWithContext(context.Background(), spec.Name, recordedChart(spec), spec.Values)
	return s.outcome(made, err)
}

func (s *session) outcome(made releaser.Releaser, err error) (*helm.Release, error) {
	if err = cmp.Or(err, s.records.failed); err == nil {
		if release, ok := made.(*helm.Release); ok {
			return release, nil
		}
		err = fmt.Errorf("helm made a record of an unknown kind, %T", made)
	}
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	return nil, err
}

// recordedChart is the chart as it is recorded: metadata and default values. Templates and files would make every record many
// times larger.
func recordedChart(spec Spec) *chart.Chart {
	return &chart.Chart{Metadata: spec.Chart.Metadata, Values: spec.Chart.Values}
}
