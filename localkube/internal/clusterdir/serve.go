package clusterdir

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Serve puts a local process behind a port of a Service.
type Serve struct {
	Namespace string `json:"namespace"`
	Service   string `json:"service"`
	Port      int32  `json:"port"`
	To        string `json:"to"`
}

// ParseService reads NS/NAME:PORT.
func ParseService(text string) (Serve, error) {
	namespace, rest, _ := strings.Cut(text, "/")
	name, port, _ := strings.Cut(rest, ":")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || !isLabel(namespace) || !isLabel(name) {
		return Serve{}, fmt.Errorf("--service must be NS/NAME:PORT, like shop/cart-webhook:443, not %q", text)
	}
	return Serve{Namespace: namespace, Service: name, Port: int32(number)}, nil
}

// ParseLocal reads the address of a process on this machine.
func ParseLocal(text string) (string, error) {
	address, err := netip.ParseAddrPort(text)
	if err != nil || !address.Addr().IsLoopback() || address.Port() == 0 {
		return "", fmt.Errorf("--to must be 127.0.0.1:PORT, where the process listens, not %q", text)
	}
	return address.String(), nil
}

// Validate refuses names that Kubernetes would not take, nor the file system.
func (i Istiod) Validate() error {
	if !isLabel(i.Revision) {
		return fmt.Errorf("--revision must be the name of a revision, like v1-24-0 or default, not %q", i.Revision)
	}
	if !isLabel(i.Namespace) {
		return fmt.Errorf("--namespace must be the name of a namespace, not %q", i.Namespace)
	}
	return nil
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }
