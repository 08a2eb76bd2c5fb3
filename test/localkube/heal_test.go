//go:build linux

package localkube_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// Whatever is killed, status names it and up heals it, with nothing lost.
func TestKilledProcessesAreNamedAndHealed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	up(t, dir, "--nodes", "3")
	threeNodes(t, dir)
	server := configOf(t, dir).Host

	for name, victims := range map[string][]string{
		"etcd":                  {"etcd"},
		"one that needs others": {"kube-scheduler"},
		"two that need another": {"kube-apiserver", "kwok"},
		"all components":        {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"},
		"localkube itself":      {"localkube"},
	} {
		t.Run(name, func(t *testing.T) {
			defer threeNodes(t, dir)
			before, _ := statusOf(t, dir)
			note := cluster.Name(t)
			createConfigMap(t, clientOf(t, configOf(t, dir)), metav1.NamespaceDefault, configMap(note))
			for _, victim := range victims {
				kill(t, before.component(t, victim).PID, syscall.SIGKILL)
			}

			if name == "localkube itself" {
				noProcesses(t, dir)
				saysThatItIsDead(t, dir)
			} else {
				saysWhoDied(t, dir, before, victims)
			}

			r := up(t, dir)
			for _, victim := range victims {
				if want := victim + " started again (it was killed by signal 9 (killed))"; victim != "localkube" && !strings.Contains(r.stdout, want) {
					t.Errorf("up does not say %q: %s", want, r)
				}
			}
			healed(t, dir, before, victims)
			if now := configOf(t, dir).Host; now != server && !listens(server) {
				t.Errorf("the API server moved from %s to %s", server, now)
			}
			client := clientOf(t, configOf(t, dir)) // of the API server where it is now
			isKept(t, client, metav1.NamespaceDefault, note)
			createDeployment(t, client, metav1.NamespaceDefault, deployment(note, 2, nil))
			awaitReady(t, client, metav1.NamespaceDefault, note)
		})
	}
}

func threeNodes(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "three nodes are ready", func() error {
		nodes, err := clientOf(t, configOf(t, dir)).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var ready int
		for _, node := range nodes.Items {
			if slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready != 3 || len(nodes.Items) != 3 {
			return fmt.Errorf("%d of %d are", ready, len(nodes.Items))
		}
		return nil
	})
}

func saysWhoDied(t *testing.T, dir string, before status, victims []string) {
	t.Helper()
	eventually(t, "status notices", func() error {
		s, code := statusOf(t, dir)
		if code != 1 || s.Healthy || !s.Running {
			return fmt.Errorf("exit code is %d and status %+v", code, s)
		}
		for _, c := range s.Components {
			killed := slices.Contains(victims, c.Name)
			if killed && (c.State != "dead" || c.Detail != "killed by signal 9 (killed)") {
				return fmt.Errorf("killed, and said to be: %+v", c)
			}
			if !killed && (c.State != "running" || c.PID != before.component(t, c.Name).PID) {
				return fmt.Errorf("not killed, and said to be: %+v", c)
			}
		}
		return nil
	})
	table := localkube(t, "status", "--dir", dir)
	if table.code != 1 || !strings.Contains(table.stderr, "localkube up --dir "+dir) {
		t.Errorf("status does not say what to do: %s", table)
	}
	for _, victim := range victims {
		if !strings.Contains(table.stdout, "dead: killed by signal 9 (killed) at ") || !strings.Contains(table.stdout, before.component(t, victim).Log) {
			t.Errorf("the table does not say how %s died: %s", victim, table)
		}
	}
}

func saysThatItIsDead(t *testing.T, dir string) {
	t.Helper()
	s, code := statusOf(t, dir)
	if code != 1 || s.Running || s.Healthy {
		t.Errorf("exit code is %d and status %+v, want it dead", code, s)
	}
	for _, c := range s.Components {
		want := "ended with localkube"
		if c.Name == "localkube" {
			want = "killed"
		}
		if c.State != "dead" || c.Detail != want {
			t.Errorf("%s is %s: %s, want dead: %s", c.Name, c.State, c.Detail, want)
		}
	}
	if table := localkube(t, "status", "--dir", dir); table.code != 1 || !strings.Contains(table.stdout, ": dead\n") || !strings.Contains(table.stderr, "localkube up --dir "+dir) {
		t.Errorf("status does not say that all is dead and what to do: %s", table)
	}
}

// healed checks that all run, and that only who had died is new, or who had lost the API server.
func healed(t *testing.T, dir string, before status, victims []string) {
	t.Helper()
	s, code := statusOf(t, dir)
	if code != 0 || !s.Healthy {
		t.Errorf("exit code is %d and status %+v, want it healthy", code, s)
	}
	everything := slices.Contains(victims, "localkube")
	noServer := slices.Contains(victims, "etcd") || slices.Contains(victims, "kube-apiserver")
	for _, c := range s.Components {
		isNew := c.PID != before.component(t, c.Name).PID
		usesServer := slices.Contains([]string{"kube-controller-manager", "kube-scheduler", "kwok"}, c.Name)
		if want := everything || slices.Contains(victims, c.Name) || noServer && usesServer; isNew != want {
			t.Errorf("%s is started again: %t, want %t", c.Name, isNew, want)
		}
	}
	if left := len(processesOf(t, dir)); left != len(s.Components) {
		t.Errorf("%d processes run, want %d", left, len(s.Components))
	}
}
