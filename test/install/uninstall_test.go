package install_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// madeByKubernetes are kinds whose objects come and go, whatever is installed.
var madeByKubernetes = []string{"Event", "EndpointSlice", "Endpoints", "Lease", "ReplicaSet", "Pod", "ControllerRevision", "IPAddress", "APIService"}

// objects are all in the cluster, by KIND NAMESPACE/NAME, but for those that Kubernetes makes as it goes.
func (w *world) objects(t testing.TB) map[string]*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	// For a moment, the API server tells of kinds whose CRD is deleted, and then does not list them.
	wait.Until(t, func(ctx context.Context) (err error) {
		all, err = harness.ListAll(ctx, w.Cluster, w, madeByKubernetes...)
		return err
	})
	named := map[string]*unstructured.Unstructured{}
	for _, o := range all {
		// The API server and the controller manager make some more when they have started: what they need, and the Service kubernetes.
		ofKubernetes := o.GetName() == "kubernetes" || o.GetNamespace() == "kube-system" && !strings.Contains(o.GetName(), "fairlead")
		if name := o.GetKind() + " " + o.GetName(); name != "ServiceAccount default" && name != "ConfigMap kube-root-ca.crt" && !ofKubernetes {
			named[o.GetKind()+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = o
		}
	}
	return named
}

// pods are the UIDs of the pods of istiod and of the workloads. Those of what has moved are gone before long.
func (w *world) pods(t testing.TB) map[string]string {
	t.Helper()
	var uids map[string]string
	wait.Until(t, func(ctx context.Context) error {
		var list corev1.PodList
		if err := w.List(ctx, &list); err != nil {
			return err
		}
		uids = map[string]string{}
		for _, pod := range list.Items {
			if pod.Namespace != operatorNamespace {
				uids[pod.Namespace+"/"+pod.Name] = string(pod.UID)
			}
		}
		if len(uids) != len(workloads)+1 {
			return fmt.Errorf("besides istiod and %v, there are the pods %v", workloads, uids)
		}
		return nil
	})
	return uids
}

// uninstalls leaves what docs/uninstall.md says, and then nothing of Fairlead.
func (w *world) uninstalls(t testing.TB, before map[string]*unstructured.Unstructured) {
	t.Helper()
	pods := w.pods(t)
	installed := w.objects(t)
	t.Logf("%s", w.run(t, "fairlead uninstall --dry-run"))
	// The page's command asks.
	command := w.command(t, "fairlead uninstall", release1)
	printed := w.run(t, strings.Replace(command, "fairlead uninstall", "fairlead uninstall --yes"+w.patience(), 1))
	t.Logf("%s", printed)
	w.keepRunning(t, pods)
	// Neither command waits for the pods to end.
	wait.Until(t, func(context.Context) error {
		if images := w.kubelet.running(); len(images) > 0 {
			return fmt.Errorf("containers of the operator still run: %v", images)
		}
		return nil
	})
	w.left(t, before, installed)
	if listed := w.run(t, "helm list -A"); !strings.Contains(listed, rev27) || strings.Contains(listed, operatorNamespace) {
		t.Errorf("Helm lists\n%s", listed)
	}
	w.deletesCRDs(t, printed)
	w.keepRunning(t, pods)
}

// keepRunning checks that no pod was restarted, and that what the operator has installed has no owner that was deleted.
func (w *world) keepRunning(t testing.TB, pods map[string]string) {
	t.Helper()
	if diff := cmp.Diff(pods, w.pods(t)); diff != "" {
		t.Errorf("pods (-before +now):\n%s", diff)
	}
	for name, object := range w.objects(t) {
		if len(object.GetOwnerReferences()) > 0 && !isOwn(object) && object.GetNamespace() != "kube-system" {
			t.Errorf("%s has the owners %v", name, object.GetOwnerReferences())
		}
		if object.GetDeletionTimestamp() != nil {
			t.Errorf("%s is being deleted, and waits for %v", name, object.GetFinalizers())
		}
	}
}

// ofTheUser are the objects in the namespace of the operator that neither Helm nor the operator has made.
var ofTheUser = []string{
	"Namespace " + operatorNamespace, "Secret " + operatorNamespace + "/" + registrySecret, "ConfigMap " + operatorNamespace + "/" + caConfig,
}

// leftInNamespaces are the objects besides those of Fairlead's kinds that the page names.
var leftInNamespaces = []string{"Namespace kuma-system", "Secret " + operatorNamespace + "/fairlead-webhook-certificate"}

// left compares what is left with what the page says: everything in other namespaces, Fairlead's CRDs with their objects, and no more.
func (w *world) left(t testing.TB, before, installed map[string]*unstructured.Unstructured) {
	t.Helper()
	now := w.objects(t)
	var kept, gone []string
	for name, object := range installed {
		_, is := now[name]
		switch {
		case before[name] != nil || isElsewhere(object):
			if !is {
				t.Errorf("%s is gone", name)
			}
		case is:
			kept = append(kept, name)
		default:
			gone = append(gone, name)
		}
	}
	want := slices.Concat(ofTheUser, leftInNamespaces)
	for _, passage := range operator.Passages() {
		for _, crd := range passage.CRDs {
			want = append(want, "CustomResourceDefinition "+crd)
		}
	}
	slices.Sort(want)
	slices.Sort(kept)
	slices.Sort(gone)
	t.Logf("gone are %d objects: %s", len(gone), strings.Join(gone, ", "))
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	for name := range now {
		if installed[name] == nil {
			t.Errorf("%s is new", name)
		}
	}
	var leases unstructured.UnstructuredList
	leases.SetAPIVersion("coordination.k8s.io/v1")
	leases.SetKind("LeaseList")
	if err := w.List(t.Context(), &leases); err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if strings.HasPrefix(lease.GetName(), "fairlead") {
			t.Errorf("Lease %s/%s is left", lease.GetNamespace(), lease.GetName())
		}
	}
}

// isElsewhere tells objects of Fairlead's kinds, and what is in the namespaces of others, from what Helm and the operator have installed for themselves.
func isElsewhere(object *unstructured.Unstructured) bool {
	namespaces := []string{"istio-system", "shop"}
	return slices.Contains(namespaces, object.GetNamespace()) || slices.Contains(namespaces, object.GetName()) || isOwn(object)
}

// isOwn tells Fairlead's kinds.
func isOwn(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc([]string{"fairlead.dev", "sailoperator.io", "materialize.cloud", "karmada.io", "kuma.io"}, func(group string) bool {
		return strings.HasSuffix(object.GroupVersionKind().Group, group)
	})
}

var deleteCommand = regexp.MustCompile(`(?m)^ +(kubectl delete crd (?:.*\\\n)*.*)$`)

// deletesCRDs runs the command that `fairlead uninstall` ends with.
func (w *world) deletesCRDs(t testing.TB, printed string) {
	t.Helper()
	found := deleteCommand.FindStringSubmatch(printed)
	if found == nil {
		t.Fatalf("fairlead uninstall does not say how to delete the CRDs:\n%s", printed)
	}
	w.run(t, found[1])
	for name, object := range w.objects(t) {
		crd, found := strings.CutPrefix(name, "CustomResourceDefinition ")
		if isOwn(object) || found && slices.ContainsFunc(operator.Passages(), func(p operator.Passage) bool { return slices.Contains(p.CRDs, crd) }) {
			t.Errorf("%s is left", name)
		}
	}
}
