package adoption_test

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// While a member cannot be reached, its Works wait and the others go on. When it is back, it catches up.
func TestMemberDownAndBack(t *testing.T) {
	s := newStage(t)
	s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied)
	heal := s.members[member2].cut(t)
	eventually(t, s.ready(member2, metav1.ConditionFalse, s.members[member2].Config().Host+" does not answer as it should"))
	template := configMap("it")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	s.create(t, s.hub, configMap("later"))
	for _, name := range []string{"it", "later"} {
		now := configMap(name)
		s.until(t, s.members[member1], now, func() error { return nil })
	}
	now := configMap("it")
	s.until(t, s.members[member1], now, has(now, "a", "2"))
	s.says(t, "later-configmap", failed, "1 of 2 clusters run it; it waits until cluster member2 can be reached: "+s.members[member2].Config().Host+" does not answer as it should")
	if err := s.ready(member1, metav1.ConditionTrue, "its API server answers")(t.Context()); err != nil {
		t.Error(err)
	}
	heal()
	eventually(t, s.ready(member2, metav1.ConditionTrue, "its API server answers"))
	for _, name := range []string{"it", "later"} {
		s.says(t, name+"-configmap", applied, "all 2 clusters run it")
	}
	s.until(t, s.members[member2], now, has(now, "a", "2"))
}

// A new operator over what is managed writes nothing but what has changed while there was none.
func TestOperatorKilledAndRestarted(t *testing.T) {
	s := newStage(t)
	for _, m := range s.members {
		s.create(t, m, deployment("it"), parse(t, service))
	}
	s.create(t, s.hub, deployment("it"), parse(t, service), configMap("it", "a", "1"), configMap("last", "a", "1"))
	for _, kind := range []string{"apps/v1 Deployment", "v1 Service", "v1 ConfigMap"} {
		version, name, _ := strings.Cut(kind, " ")
		p := policy(version, name, everywhere, overwrite)
		p.Name = strings.ToLower(name)
		s.create(t, s.hub, p)
	}
	for _, binding := range []string{"it-deployment", "it-service", "it-configmap", "last-configmap"} {
		s.says(t, binding, applied, "all 2 clusters run it")
	}
	for _, m := range s.members {
		s.running(t, m, "it")
	}
	s.operator.Kill()
	template := configMap("last")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	before := map[string]map[string]int{}
	for name, m := range s.members {
		before[name] = m.writes(t)
	}
	if err := s.operate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.operator.ShowTo(t)
	for _, m := range s.members {
		now := configMap("last")
		s.until(t, m, now, has(now, "a", "2"))
	}
	s.pass(t, "another")
	for name, m := range s.members {
		want := before[name]
		want["configmaps PUT"]++
		want["configmaps POST"]++
		if diff := cmp.Diff(want, m.writes(t)); diff != "" {
			t.Errorf("writes to %s (-want +got)\n%s", name, diff)
		}
	}
}

const service = "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {ports: [{port: 80}]}}"

// writes are how often its API server was asked to write objects of the kinds that tests take over.
func (s *site) writes(t testing.TB) map[string]int {
	t.Helper()
	kube, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	text, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text))
	for lines.Scan() {
		labels, found := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !found || !strings.Contains(labels, `subresource=""`) {
			continue
		}
		for _, resource := range []string{"configmaps", "services", "deployments"} {
			for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
				if strings.Contains(labels, `resource="`+resource+`"`) && strings.Contains(labels, `verb="`+verb+`"`) {
					n, err := strconv.ParseFloat(labels[strings.LastIndex(labels, " ")+1:], 64)
					if err != nil {
						t.Fatalf("%v: %s", err, lines.Text())
					}
					all[resource+" "+verb] += int(n)
				}
			}
		}
	}
	return all
}

func TestHubRestarted(t *testing.T) {
	s := newStage(t)
	s.create(t, s.hub, configMap("it", "a", "1"), configMap("same", "a", "1"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied)
	s.says(t, "same-configmap", applied)
	before := s.versions(t, configMap("same"))
	s.hub.cut(t)()
	template := configMap("it")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	for _, m := range s.members {
		now := configMap("it")
		s.until(t, m, now, has(now, "a", "2"))
	}
	s.pass(t, "another")
	if err := s.operator.Alive(); err != nil {
		t.Error(err)
	}
	if after := s.versions(t, configMap("same")); after != before {
		t.Errorf("it was written to: %v became %v", before, after)
	}
	for member := range s.members {
		within(t, 15*time.Second, s.ready(member, metav1.ConditionTrue, ""))
	}
}
