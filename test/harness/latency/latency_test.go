package latency

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func TestThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfigTo("https://127.0.0.1:1"), path); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		latency string
		args    []string
		delayed bool
	}{
		"no latency":                  {"", []string{"--kubeconfig", path}, false},
		"no kubeconfig":               {"1s", []string{"operator"}, false},
		"a kubeconfig that is absent": {"1s", []string{"--kubeconfig", path + ".none"}, false},
		"two arguments":               {"1s", []string{"--kubeconfig", path, "--v"}, true},
		"one argument":                {"1s", []string{"--v", "--kubeconfig=" + path}, true},
		"the last one counts":         {"1s", []string{"--kubeconfig", "first", "--kubeconfig=" + path}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Variable, c.latency)
			got, end, err := Through(c.args)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			if !c.delayed {
				if !slices.Equal(got, c.args) {
					t.Errorf("the arguments are %q", got)
				}
				return
			}
			_, through := kubeconfigOf(got)
			config, err := clientcmd.BuildConfigFromFlags("", through)
			if err != nil || through == path || !strings.HasPrefix(config.Host, "http://127.0.0.1:") {
				t.Errorf("the arguments are %q, and lead to %v, %v", got, config, err)
			}
			end()
			if _, err := os.Stat(through); !os.IsNotExist(err) {
				t.Errorf("the kubeconfig is left: %v", err)
			}
		})
	}
	for _, invalid := range []string{"0s", "-1s", "soon"} {
		t.Setenv(Variable, invalid)
		if _, _, err := Through([]string{"--kubeconfig", path}); err == nil || !strings.Contains(err.Error(), Variable) {
			t.Errorf("%s: %v", invalid, err)
		}
	}
}

// What is late is whole and in order.
func TestLate(t *testing.T) {
	const text = "one two three"
	body := late(io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), time.Millisecond)
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != text {
		t.Errorf("got %q, %v", got, err)
	}
}
