package supervisor

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// Below the range from which operating systems take ports for outgoing
// connections, so that no connection of anybody's sits on ours.
const firstPort, lastPort = 20000, 32000

// keepOrChoose keeps the ports that are free and exchanges those that are not,
// save a pinned one.
func keepOrChoose(ports clusterdir.Ports, pinned bool, free func(port int) bool) (clusterdir.Ports, error) {
	taken := map[int]bool{}
	for _, port := range []*int{&ports.API, &ports.EtcdClient, &ports.EtcdPeer} {
		if *port != 0 && !taken[*port] && free(*port) {
			taken[*port] = true
			continue
		}
		if port == &ports.API && pinned {
			return ports, fmt.Errorf("port %d on 127.0.0.1 is taken by another process: choose another with --port, or any that is free with --port 0", *port)
		}
		chosen, err := chooseFree(taken, free)
		if err != nil {
			return ports, err
		}
		*port, taken[chosen] = chosen, true
	}
	return ports, nil
}

func chooseFree(taken map[int]bool, free func(port int) bool) (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if !taken[port] && free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found on 127.0.0.1 between %d and %d", firstPort, lastPort)
}

// isFree tells whether somebody could listen on the port.
func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}
