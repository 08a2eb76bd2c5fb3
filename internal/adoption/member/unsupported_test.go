package member

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// The hub does not connect to a cluster by fields that it does not support, and says so; fields that need no support keep nothing.
func TestUnsupportedFieldsOfCluster(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*clusterv1alpha1.ClusterSpec)
		field  string
	}{
		"pull":         {func(s *clusterv1alpha1.ClusterSpec) { s.SyncMode = clusterv1alpha1.SyncPull }, "spec.syncMode: Pull"},
		"insecure":     {func(s *clusterv1alpha1.ClusterSpec) { s.InsecureSkipTLSVerification = true }, "spec.insecureSkipTLSVerification"},
		"proxy":        {func(s *clusterv1alpha1.ClusterSpec) { s.ProxyURL = "https://proxy" }, "spec.proxyURL"},
		"proxy header": {func(s *clusterv1alpha1.ClusterSpec) { s.ProxyHeader = map[string]string{"a": "b"} }, "spec.proxyHeader"},
		"without a scheme": {func(s *clusterv1alpha1.ClusterSpec) {
			s.APIEndpoint = strings.TrimPrefix(s.APIEndpoint, "https://")
		}, ""},
		"all that is kept as it is written": {func(s *clusterv1alpha1.ClusterSpec) {
			s.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "a", Name: "b"}
			s.ResourceModels, s.Provider, s.Region, s.Zone, s.Zones = []clusterv1alpha1.ResourceModel{{}}, "acme", "east", "a", []string{"a"}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, func(cluster *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.change(&cluster.Spec) })
			o.reconcile(t)
			ready := meta.FindStatusCondition(o.cluster(t).Status.Conditions, clusterv1alpha1.ConditionReady)
			if c.field == "" {
				if ready.Status != metav1.ConditionTrue {
					t.Errorf("got %s: %s", ready.Reason, ready.Message)
				}
				return
			}
			if ready.Status != metav1.ConditionFalse || ready.Reason != "UnsupportedField" || !strings.HasPrefix(ready.Message, c.field+" is not supported: ") {
				t.Errorf("got %s %s: %s", ready.Status, ready.Reason, ready.Message)
			}
			if requests, _ := o.server.seen(); requests > 0 {
				t.Errorf("%d requests to the cluster", requests)
			}
		})
	}
}
