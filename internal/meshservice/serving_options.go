package meshservice

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
)

// ServingOptions say where proxies get their configuration, and how they prove who they are.
type ServingOptions struct {
	// BindAddress is where they connect; empty means that none are served.
	BindAddress string
	// CertFile and KeyFile are what the control plane proves itself with.
	CertFile, KeyFile string
	// ClientCAFile signs the certificates of proxies. A proxy on Kubernetes may show the token of its service account instead.
	ClientCAFile string
	// Insecure believes everybody, in clear text.
	Insecure bool
	// Pod is this operator's own, as namespace/name: it is marked while it serves, so that a Service finds it.
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
