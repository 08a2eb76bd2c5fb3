package supervisor

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

func TestKeepOrChoose(t *testing.T) {
	const occupied = firstPort
	const a, b, c = lastPort, lastPort + 1, lastPort + 2 // of which none is chosen by chance
	free := func(port int) bool { return port != occupied }
	const chosen = -1 // any other than before, in range and free
	tests := map[string]struct {
		before clusterdir.Ports
		pinned bool
		after  clusterdir.Ports
		error  string
	}{
		"first start":                 {after: clusterdir.Ports{API: chosen, EtcdClient: chosen, EtcdPeer: chosen}},
		"all are still free":          {before: clusterdir.Ports{API: a, EtcdClient: b, EtcdPeer: c}, after: clusterdir.Ports{API: a, EtcdClient: b, EtcdPeer: c}},
		"the API's is taken":          {before: clusterdir.Ports{API: occupied, EtcdClient: b, EtcdPeer: c}, after: clusterdir.Ports{API: chosen, EtcdClient: b, EtcdPeer: c}},
		"etcd's is taken":             {before: clusterdir.Ports{API: a, EtcdClient: occupied, EtcdPeer: c}, after: clusterdir.Ports{API: a, EtcdClient: chosen, EtcdPeer: c}},
		"two are the same":            {before: clusterdir.Ports{API: a, EtcdClient: a, EtcdPeer: c}, after: clusterdir.Ports{API: a, EtcdClient: chosen, EtcdPeer: c}},
		"pinned and free":             {before: clusterdir.Ports{API: a}, pinned: true, after: clusterdir.Ports{API: a, EtcdClient: chosen, EtcdPeer: chosen}},
		"pinned and taken":            {before: clusterdir.Ports{API: occupied, EtcdClient: b, EtcdPeer: c}, pinned: true, error: "port " + strconv.Itoa(occupied) + " on 127.0.0.1 is taken"},
		"pinned, etcd's is taken":     {before: clusterdir.Ports{API: a, EtcdClient: occupied, EtcdPeer: c}, pinned: true, after: clusterdir.Ports{API: a, EtcdClient: chosen, EtcdPeer: c}},
		"what to do when it is taken": {before: clusterdir.Ports{API: occupied}, pinned: true, error: "--port 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := keepOrChoose(test.before, test.pinned, free)
			if test.error != "" {
				if err == nil || !strings.Contains(err.Error(), test.error) {
					t.Errorf("error is %v, want one that says %q", err, test.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.API == got.EtcdClient || got.API == got.EtcdPeer || got.EtcdClient == got.EtcdPeer {
				t.Errorf("one port serves two: %+v", got)
			}
			for _, port := range []struct{ before, got, want int }{
				{test.before.API, got.API, test.after.API},
				{test.before.EtcdClient, got.EtcdClient, test.after.EtcdClient},
				{test.before.EtcdPeer, got.EtcdPeer, test.after.EtcdPeer},
			} {
				switch {
				case port.want != chosen && port.got != port.want:
					t.Errorf("port is %d, want %d kept", port.got, port.want)
				case port.want == chosen && (port.got == port.before || port.got < firstPort || port.got >= lastPort || !free(port.got)):
					t.Errorf("port is %d, want a free one between %d and %d", port.got, firstPort, lastPort)
				}
			}
		})
	}
}

func TestIsFree(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if port := listener.Addr().(*net.TCPAddr).Port; isFree(port) {
		t.Errorf("port %d is free, though it is taken", port)
	}
}

func TestNoPortIsFree(t *testing.T) {
	if _, err := chooseFree(nil, func(int) bool { return false }); err == nil {
		t.Error("a port was chosen, though none is free")
	}
}
