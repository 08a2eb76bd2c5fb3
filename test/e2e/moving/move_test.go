package moving_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// move is one from another system to a passage.
type move struct {
	world
	passage, system string
	other           otherController
	// flags of the operator.
	flags []string
	// webhooks is the file with the webhook configuration that the other system leaves, if it has one, and guarded an object that these
	// webhooks are asked about.
	webhooks string
	guarded  client.Object
}

// otherController is what acts on the kinds of a passage until it is stopped.
type otherController struct {
	namespace string
	// seen is how Fairlead describes that it acts, and way what to do about that.
	seen, way string
	stop      func(*testing.T)
}

// deployed is a controller with a Deployment, as NAMESPACE/NAME.
func (w world) deployed(deployment string) otherController {
	namespace, _, _ := strings.Cut(deployment, "/")
	return otherController{
		namespace: namespace, seen: "Deployment " + deployment + " is scaled to 1", way: "scale Deployment " + deployment + " to 0",
		stop: func(t *testing.T) { w.scale(t, deployment, 0) },
	}
}

// start starts an operator of the passage.
func (m move) start(t *testing.T, flags ...string) {
	t.Helper()
	m.operator(t, append(append([]string{"--passages=" + m.passage}, m.flags...), flags...)...)
}

// holdsBeside starts Fairlead beside the other controller, which runs: nothing is written, and check says why.
func (m move) holdsBeside(t *testing.T) {
	t.Helper()
	before, running := m.objects(t), m.running(t, m.other.namespace)
	m.start(t)
	m.logged(t, 0, "passage holds", "passage="+m.passage, "reason=ForeignController", m.other.seen, "--take-over "+m.passage)
	m.logged(t, 0, "msg=ready")
	m.checkSays(t, "failed", "ForeignController: "+m.system+" acts", m.other.way, "--take-over "+m.passage)
	m.unwritten(t, before)
	unchanged(t, running, m.running(t, m.other.namespace))

	// Asked to take over, Fairlead refuses as long as the other runs.
	m.start(t, "--take-over="+m.passage)
	m.logged(t, 0, "passage holds", "passage="+m.passage, "then the passage goes on by itself")
	m.logged(t, 0, "msg=ready")
	m.unwritten(t, before)
	m.Operator.Kill()
}

// takesOver stops the other controller and starts Fairlead in its place.
func (m move) takesOver(t *testing.T) {
	t.Helper()
	var left []*unstructured.Unstructured
	if m.webhooks != "" {
		left = m.apply(t, m.webhooks, "helm")
		m.asksWebhooks(t)
	}
	m.other.stop(t)
	m.checkSays(t, "failed", "has left traces", "start Fairlead with --take-over "+m.passage)
	m.start(t, "--take-over="+m.passage)
	if m.webhooks != "" {
		m.deletesWebhooks(t, left[len(left)-1])
	}
	m.logged(t, 0, "msg=ready")
}

// asksWebhooks waits until the API server asks the webhooks of the other system, which it does a moment after they are registered.
func (m move) asksWebhooks(t *testing.T) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/asked":"true"}}}`))
	wait.Until(t, func(ctx context.Context) error {
		err := m.Patch(ctx, m.guarded.DeepCopyObject().(client.Object), patch, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("the API server does not ask the webhooks of the %s about %T %s: %v", m.system, m.guarded, m.guarded.GetName(), err)
		}
		return nil
	})
}

// deletesWebhooks deletes the webhook configuration of the other system, as its page says: it refuses Fairlead's writes, and check and
// the log say so.
func (m move) deletesWebhooks(t *testing.T, configuration *unstructured.Unstructured) {
	t.Helper()
	m.checkSaysOf(t, "admission", "warning", configuration.GetKind()+" "+configuration.GetName()+" has failurePolicy Fail, and is not served",
		"kubectl delete "+strings.ToLower(configuration.GetKind())+" "+configuration.GetName())
	m.logged(t, 0, "level=INFO", "passage="+m.passage, "trying again", "failed calling webhook")
	if err := m.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	m.checkSaysOf(t, "admission", "ok")
}

type checkLine struct{ Check, State, Message, Action string }

// checkSays waits until `fairlead check` says this of the passage, and logs what it prints.
func (m move) checkSays(t *testing.T, state string, parts ...string) {
	t.Helper()
	m.checkSaysOf(t, "passage "+m.passage, state, parts...)
}

func (m move) checkSaysOf(t *testing.T, check, state string, parts ...string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		result := harness.RunCommand(t, m.Cluster, "check", "-o", "json")
		var report struct {
			OK     bool
			Checks []checkLine
		}
		if err := json.Unmarshal([]byte(result.Stdout), &report); err != nil {
			return fmt.Errorf("%w: %s%s", err, result.Stdout, result.Stderr)
		}
		for _, line := range report.Checks {
			if line.Check != check {
				continue
			}
			if line.State != state {
				return fmt.Errorf("check says %+v", line)
			}
			for _, part := range parts {
				if !strings.Contains(line.Message+"\n"+line.Action, part) {
					return fmt.Errorf("check says %+v, and not %q", line, part)
				}
			}
			return nil
		}
		return fmt.Errorf("check says nothing of %s: %s", check, result.Stdout)
	})
	printed := harness.RunCommand(t, m.Cluster, "check")
	t.Logf("fairlead check, exit code %d:\n%s", printed.Code, printed.Stdout)
}

// uninstalls runs `fairlead uninstall` once the operator has ended.
func (m move) uninstalls(t *testing.T) {
	t.Helper()
	m.Operator.Kill()
	result := harness.RunCommand(t, m.Cluster, "uninstall", "--yes", "--timeout", wait.Deadline().String())
	if result.Code != 0 {
		t.Fatalf("uninstall: %+v", result)
	}
	t.Logf("fairlead uninstall:\n%s", result.Stdout)
}

// plans runs `fairlead plan` of a resource before the move, which has to know what a takeover leaves.
func (m move) plans(t *testing.T, says string, resource ...string) {
	t.Helper()
	result := harness.RunCommand(t, m.Cluster, append([]string{"plan"}, resource...)...)
	t.Logf("fairlead plan %s, exit code %d:\n%s%s", strings.Join(resource, " "), result.Code, result.Stdout, result.Stderr)
	if result.Code != 0 && result.Code != 3 || !strings.Contains(result.Stdout, says) {
		t.Errorf("the plan ended with %d, and does not say %q", result.Code, says)
	}
}
