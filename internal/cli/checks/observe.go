package checks

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/versions"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/operator/foreign"
	"github.com/fairlead/fairlead/internal/version"
)

// Observe reads the facts. What may not be read, or does not answer, is unknown.
func Observe(ctx context.Context, config *rest.Config, pre bool, now time.Time) (Facts, error) {
	f := Facts{Unknown: map[string]string{}}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return f, err
	}
	server, err := clients.Discovery().ServerVersion()
	if err != nil {
		return f, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	f.Kubernetes = server.GitVersion
	asked := toCheck
	if pre {
		asked = append(slices.Clone(toCheck), toInstall...)
	}
	if f.Lacking, err = callerLacks(ctx, clients, asked); err != nil {
		return f, fmt.Errorf("find out what you may do: %w", err)
	}
	f.Leaders, f.CRDs = versions.Observe(ctx, config, now)
	f.observeOperators(ctx, clients)
	if err := f.observeForeign(ctx, config, pre); err != nil {
		return f, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return f, err
	}
	if f.observeAdmission(ctx, clients, objects); pre {
		return f, nil
	}
	f.Charts = f.observeConditions(ctx, objects, "charts", v1.GroupVersion.WithResource("istiorevisions"), "", func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && c.Reason == string(v1.ReasonChartsUnavailable)
	})
	f.Members = f.observeConditions(ctx, objects, "members", clusterv1alpha1.GroupVersion.WithResource("clusters"), clusterv1alpha1.ConditionReady, func(c metav1.Condition) bool {
		return c.Type == clusterv1alpha1.ConditionReady && c.Status != metav1.ConditionTrue
	})
	f.Meshes = f.observeConditions(ctx, objects, "proxies", kumav1alpha1.GroupVersion.WithResource("meshes"), "", func(c metav1.Condition) bool {
		return c.Type == kumav1alpha1.ConditionServed && c.Status == metav1.ConditionFalse && c.Reason != kumav1alpha1.ReasonNotServed
	})
	return f, f.observeWebhook(ctx, config, objects)
}

// observeOperators finds those of the chart.
func (f *Facts) observeOperators(ctx context.Context, clients kubernetes.Interface) {
	list, err := clients.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "helm.sh/chart"})
	if err != nil {
		f.Unknown["operator"] = err.Error()
		return
	}
	for i := range list.Items {
		d := &list.Items[i]
		if !strings.HasPrefix(d.Labels["helm.sh/chart"], "fairlead-") || !slices.Contains(argumentsOf(d), "operator") {
			continue
		}
		o := Operator{Namespace: d.Namespace, Name: d.Name, Wanted: ptr.Deref(d.Spec.Replicas, 1), Ready: d.Status.ReadyReplicas,
			ChartSource: flagOf(d, "chart-repository"), Passages: passagesOf(d), TakesOver: strings.Split(flagOf(d, "take-over"), ",")}
		if v := d.Labels["app.kubernetes.io/version"]; v != "" && "v"+v != version.Get().Version {
			o.OtherVersion = v
		}
		o.ServiceAccount = d.Namespace + "/" + d.Spec.Template.Spec.ServiceAccountName
		asked, err := neededBy(d)
		if err == nil {
			o.Lacking, err = userLacks(ctx, clients, "system:serviceaccount:"+strings.ReplaceAll(o.ServiceAccount, "/", ":"), asked)
		}
		if o.Asked = len(asked); err != nil {
			f.Unknown["permissions of the operator"] = err.Error()
		}
		f.Operators = append(f.Operators, o)
	}
}

// passagesOf are those that an operator runs.
func passagesOf(d *appsv1.Deployment) []string {
	if asked := flagOf(d, "passages"); asked != "" {
		return strings.Split(asked, ",")
	}
	var all []string
	for _, passage := range operator.Passages() {
		all = append(all, passage.Name)
	}
	return all
}

func argumentsOf(d *appsv1.Deployment) []string {
	var all []string
	for _, container := range d.Spec.Template.Spec.Containers {
		all = append(all, container.Args...)
	}
	return all
}

// flagOf is the value of a flag: of several, the last one counts.
func flagOf(d *appsv1.Deployment, name string) string {
	for _, argument := range slices.Backward(argumentsOf(d)) {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

// observeForeign looks for other controllers of the passages that an operator runs; before an installation, or if no operator
// was found, of all.
func (f *Facts) observeForeign(ctx context.Context, config *rest.Config, pre bool) error {
	for _, passage := range operator.Passages() {
		runs := slices.ContainsFunc(f.Operators, func(o Operator) bool { return slices.Contains(o.Passages, passage.Name) })
		if !pre && len(f.Operators) > 0 && !runs {
			f.Foreign = append(f.Foreign, Foreign{System: foreign.Of(passage.Name), NotRun: true})
			continue
		}
		observer, err := foreign.NewObserver(config, foreign.Of(passage.Name), passage.CRDs)
		if err != nil {
			return err
		}
		observer.Once = true
		seen, err := observer.Observe(ctx)
		if err != nil {
			return fmt.Errorf("look for other controllers: %w", err)
		}
		takesOver := slices.ContainsFunc(f.Operators, func(o Operator) bool { return slices.Contains(o.TakesOver, passage.Name) })
		f.Foreign = append(f.Foreign, Foreign{System: observer.System, Observed: seen, TakeOver: takesOver})
	}
	return nil
}

// observeConditions has an object for each of a kind, with the message of the first condition that is bad, or with the news that
// the expected condition is missing.
func (f *Facts) observeConditions(ctx context.Context, client dynamic.Interface, check string, resource schema.GroupVersionResource, expected string, bad func(metav1.Condition) bool) []Object {
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.Unknown[check] = err.Error()
		return nil
	}
	var objects []Object
	for _, item := range list.Items {
		object, found := Object{Name: item.GetKind() + " " + item.GetName()}, expected == ""
		conditions, _, _ := unstructured.NestedSlice(item.Object, "status", "conditions")
		for _, c := range conditions {
			fields, _ := c.(map[string]any)
			text := func(name string) string { value, _ := fields[name].(string); return value }
			condition := metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
			found = found || condition.Type == expected
			if bad(condition) {
				object.Message = condition.Reason + ": " + condition.Message
				break
			}
		}
		if !found {
			object.Message = "it has no condition " + expected + " yet: no operator has looked at it"
		}
		objects = append(objects, object)
	}
	return objects
}

const converted = "materializes.materialize.cloud"

// observeWebhook has the API server convert an object that is not created.
func (f *Facts) observeWebhook(ctx context.Context, config *rest.Config, objects dynamic.Interface) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	crd, err := client.CustomResourceDefinitions().Get(ctx, converted, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.Unknown["webhook"] = err.Error()
		return nil
	}
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	f.Webhook = &Webhook{CRD: converted, Ends: lastEnd(conversion.Webhook.ClientConfig.CABundle)}
	for _, version := range crd.Spec.Versions {
		if version.Storage || !version.Served {
			continue
		}
		probe := &unstructured.Unstructured{}
		probe.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
		probe.SetGenerateName("fairlead-check-")
		probe.Object["spec"] = map[string]any{"environmentdImageRef": "fairlead/check:v0", "backendSecretName": "check"}
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
		_, err := objects.Resource(resource).Namespace(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil, apierrors.IsInvalid(err):
		case apierrors.IsForbidden(err) || meta.IsNoMatchError(err):
			f.Unknown["webhook"] = "whether the API server reaches the webhook is not known: " + err.Error()
		default:
			f.Webhook.Err = err.Error()
		}
	}
	return nil
}

// lastEnd is when the last of the certificates ends.
func lastEnd(bundle []byte) (end time.Time) {
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return end
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.After(end) {
			end = certificate.NotAfter
		}
	}
}
