package meshservice

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
)

// ServingOptions are those of the xDS server.
type ServingOptions struct {
	// BindAddress is the address of the xDS server; empty disables it.
	BindAddress string
	// CertFile and KeyFile are the server certificate.
	CertFile, KeyFile string
	// ClientCAFile is the CA of client certificates. A proxy on Kubernetes may send its service account token instead.
	ClientCAFile string
	// Insecure disables TLS and authentication.
	Insecure bool
	// Pod is the operator's own as namespace/name: it is labelled while it serves, for the Service.
	Pod string
}

func (o *ServingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "mesh-bind-address", o.BindAddress,
		"address of the xDS server; empty disables xDS serving")
	flags.StringVar(&o.CertFile, "mesh-cert-file", o.CertFile, "certificate of the xDS server; reloaded when the file changes")
	flags.StringVar(&o.KeyFile, "mesh-key-file", o.KeyFile, "key of that certificate")
	flags.StringVar(&o.ClientCAFile, "mesh-client-ca-file", o.ClientCAFile,
		"CA of the client certificates of proxies; a proxy on Kubernetes may send a service account token instead")
	flags.BoolVar(&o.Insecure, "mesh-insecure", o.Insecure,
		"serve proxies without TLS and authentication; on a loopback interface only")
	flags.StringVar(&o.Pod, "mesh-pod", o.Pod,
		"NAMESPACE/NAME of the operator's own pod, which is labelled "+LabelServing+" while the operator serves proxies")
}

func (o ServingOptions) enabled() bool { return o.BindAddress != "" }

func (o ServingOptions) validate() error {
	if !o.enabled() {
		return nil
	}
	host, _, err := net.SplitHostPort(o.BindAddress)
	if err != nil {
		return fmt.Errorf("--mesh-bind-address %q is not HOST:PORT", o.BindAddress)
	}
	if o.Pod != "" && strings.Count(o.Pod, "/") != 1 {
		return fmt.Errorf("--mesh-pod %q is not NAMESPACE/NAME", o.Pod)
	}
	if o.Insecure {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("--mesh-insecure disables authentication, and %s is not a loopback address: "+
				"bind to 127.0.0.1, or give --mesh-cert-file and --mesh-key-file", o.BindAddress)
		}
		return nil
	}
	if o.CertFile == "" || o.KeyFile == "" {
		return errors.New("--mesh-bind-address needs --mesh-cert-file and --mesh-key-file: tokens and configuration are secrets " +
			"(or --mesh-insecure, on 127.0.0.1)")
	}
	return nil
}
