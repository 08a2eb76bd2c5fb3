package clusterdir

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func port(n int) *int { return &n }

func TestWishValidate(t *testing.T) {
	tests := map[string]struct {
		wish  Wish
		error string // none when empty
	}{
		"nothing said":    {wish: Wish{}},
		"everything said": {wish: Wish{Profile: Cluster, Nodes: 3, Port: port(6443)}},
		"a hub":           {wish: Wish{Profile: Hub}},
		"any port":        {wish: Wish{Port: port(0)}},
		"unknown profile": {wish: Wish{Profile: "spoke"}, error: `unknown --profile "spoke": it is cluster or hub`},
		"negative nodes":  {wish: Wish{Nodes: -1}, error: "--nodes must not be negative"},
		"nodes in a hub":  {wish: Wish{Profile: Hub, Nodes: 1}, error: "a hub has no --nodes"},
		"negative port":   {wish: Wish{Port: port(-1)}, error: "--port must be between 0 and 65535"},
		"port too high":   {wish: Wish{Port: port(65536)}, error: "--port must be between 0 and 65535"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { checkError(t, test.wish.Validate(), test.error) })
	}
}

func TestSettle(t *testing.T) {
	ports := Ports{API: 20001, EtcdClient: 20002, EtcdPeer: 20003}
	pinned := Ports{API: 6443, EtcdClient: 20002, EtcdPeer: 20003}
	tests := map[string]struct {
		before  Settings
		wish    Wish
		running bool
		after   Settings
		error   string
	}{
		"first start, nothing said": {after: Settings{Profile: Cluster, Nodes: 1}},
		"first start as a hub":      {wish: Wish{Profile: Hub}, after: Settings{Profile: Hub}},
		"first start with nodes":    {wish: Wish{Nodes: 3}, after: Settings{Profile: Cluster, Nodes: 3}},
		"first start on a port":     {wish: Wish{Port: port(6443)}, after: Settings{Profile: Cluster, Nodes: 1, Ports: Ports{API: 6443}, PinnedPort: true}},
		"started again, all stays": {
			before: Settings{Profile: Cluster, Nodes: 3, Ports: ports},
			after:  Settings{Profile: Cluster, Nodes: 3, Ports: ports},
		},
		"a hub stays one": {before: Settings{Profile: Hub, Ports: ports}, after: Settings{Profile: Hub, Ports: ports}},
		"moved to a port": {
			before: Settings{Profile: Cluster, Nodes: 1, Ports: ports}, wish: Wish{Port: port(6443)},
			after: Settings{Profile: Cluster, Nodes: 1, Ports: pinned, PinnedPort: true},
		},
		"a port that was asked for stays": {
			before: Settings{Profile: Cluster, Nodes: 1, Ports: pinned, PinnedPort: true},
			after:  Settings{Profile: Cluster, Nodes: 1, Ports: pinned, PinnedPort: true},
		},
		"a port given up": {
			before: Settings{Profile: Cluster, Nodes: 1, Ports: pinned, PinnedPort: true}, wish: Wish{Port: port(0)},
			after: Settings{Profile: Cluster, Nodes: 1, Ports: pinned},
		},
		"more nodes": {
			before: Settings{Profile: Cluster, Nodes: 1, Ports: ports}, wish: Wish{Nodes: 2},
			after: Settings{Profile: Cluster, Nodes: 2, Ports: ports},
		},
		"running, nothing said": {
			before: Settings{Profile: Cluster, Nodes: 1, Ports: ports}, running: true,
			after: Settings{Profile: Cluster, Nodes: 1, Ports: ports},
		},
		"running, the same said": {
			before: Settings{Profile: Cluster, Nodes: 2, Ports: pinned}, running: true,
			wish:  Wish{Profile: Cluster, Nodes: 2, Port: port(6443)},
			after: Settings{Profile: Cluster, Nodes: 2, Ports: pinned},
		},
		"another profile":        {before: Settings{Profile: Hub}, wish: Wish{Profile: Cluster}, error: "/blue holds a hub, not a cluster: use another --dir"},
		"nodes for a hub":        {before: Settings{Profile: Hub}, wish: Wish{Nodes: 1}, error: "/blue holds a hub, which has no --nodes"},
		"fewer nodes":            {before: Settings{Profile: Cluster, Nodes: 3}, wish: Wish{Nodes: 1}, error: "/blue has 3 nodes, and none is taken away"},
		"running, more nodes":    {before: Settings{Profile: Cluster, Nodes: 1}, wish: Wish{Nodes: 2}, running: true, error: "localkube down --dir /blue"},
		"running, another port":  {before: Settings{Profile: Cluster, Nodes: 1, Ports: ports}, wish: Wish{Port: port(6443)}, running: true, error: "runs on port 20001"},
		"running, other profile": {before: Settings{Profile: Cluster, Nodes: 1}, wish: Wish{Profile: Hub}, running: true, error: "/blue holds a cluster, not a hub"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after, err := Dir("/blue").Settle(test.before, test.wish, test.running)
			checkError(t, err, test.error)
			if diff := cmp.Diff(test.after, after); err == nil && diff != "" {
				t.Errorf("settled otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error is %v, want one that says %q", err, want)
	}
}
