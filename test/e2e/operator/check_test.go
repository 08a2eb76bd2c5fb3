package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestCheck checks a cluster before Fairlead is there, beside a controller of another system, and with an operator at work.
func TestCheck(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Profile: "hub", KeepNamespaces: true})
	admin := administrator(t, c.Config())

	before := fairlead(t, "check", "--pre", "--kubeconfig", c.Kubeconfig())
	if before.code != 0 || !strings.Contains(before.stdout, "you may install the chart") || !strings.Contains(before.stdout, "0 failed") {
		t.Errorf("check --pre ended with %d:\n%s%s", before.code, before.stdout, before.stderr)
	}
	without := fairlead(t, "check", "--kubeconfig", c.Kubeconfig())
	if without.code != 1 || !strings.Contains(without.stdout, "no CRD of Fairlead is installed") {
		t.Errorf("check without Fairlead ended with %d:\n%s%s", without.code, without.stdout, without.stderr)
	}
	if wrong := fairlead(t, "check", "--post", "--kubeconfig", c.Kubeconfig()); wrong.code != 2 {
		t.Errorf("wrong usage ended with %d", wrong.code)
	}

	p := startOperator(t, c.Kubeconfig(), harness.LongLease())
	p.leading(t)
	type line struct{ Check, State, Message, Action string }
	check := func() (result cliResult, lines map[string]line) {
		t.Helper()
		result = fairlead(t, "check", "-o", "json", "--kubeconfig", c.Kubeconfig())
		var report struct {
			OK     bool
			Checks []line
		}
		if err := json.Unmarshal([]byte(result.stdout), &report); err != nil {
			t.Fatalf("%v:\n%s%s", err, result.stdout, result.stderr)
		}
		if report.OK != (result.code == 0) {
			t.Errorf("ok is %t, and the exit code %d", report.OK, result.code)
		}
		lines = map[string]line{}
		for _, l := range report.Checks {
			lines[l.Check] = l
		}
		return result, lines
	}
	var lines map[string]line
	wait.Until(t, func(context.Context) error { // a passage begins when it is known that nobody else acts on its kinds, so not all do at once
		var at cliResult
		at, lines = check()
		if at.code != 0 || !strings.Contains(lines["webhook"].Message, "the API server reaches the webhook") || !strings.HasPrefix(lines["leaders"].Message, "4 passages") {
			return fmt.Errorf("check beside an operator ended with %d:\n%s", at.code, at.stdout)
		}
		return nil
	})

	// The operator is gone, and a Materialize operator is there: its pods may do everything.
	p.Kill()
	create(t, admin, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "mz-operator", Namespace: "kube-system"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mz"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "mz"}},
				Spec: corev1.PodSpec{ServiceAccountName: "namespace-controller", Containers: []corev1.Container{
					{Name: "operator", Image: "docker.io/materialize/orchestratord:v26.0.0"},
				}},
			},
		},
	})
	create(t, admin, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mz-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "namespace-controller"}},
	})
	var after cliResult
	wait.Until(t, func(context.Context) error { // the API server reads roles from a cache
		if after, lines = check(); lines["passage rollout"].State != "failed" {
			return fmt.Errorf("the other controller is not seen:\n%s", after.stdout)
		}
		return nil
	})
	if rollout := lines["passage rollout"]; after.code != 1 || rollout.State != "failed" || !strings.Contains(rollout.Message, "ForeignController: Materialize operator acts") ||
		!strings.Contains(rollout.Action, "--take-over rollout") {
		t.Errorf("check beside another controller ended with %d:\n%s", after.code, after.stdout)
	}
	if webhook := lines["webhook"]; webhook.State != "failed" || !strings.Contains(webhook.Action, "operator is ready") {
		t.Errorf("nobody serves the webhook, and check says %+v", webhook)
	}
}
