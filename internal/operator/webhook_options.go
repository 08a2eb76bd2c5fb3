package operator

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
)

// WebhookOptions say where the API server finds the webhooks, and which certificate they have.
type WebhookOptions struct {
	BindAddress string
	// Service is NAMESPACE/NAME:PORT. Without one, the webhooks are registered by URL on this machine.
	Service string

	CertificateSource string
	CertificateSecret string
	CertificateDir    string

	// Memory is a quantity, empty for a share of the operator's.
	Memory string
}

const loopback = "127.0.0.1"

func defaultWebhookOptions() WebhookOptions {
	return WebhookOptions{
		BindAddress:       loopbackAnyPort,
		CertificateSource: certs.SelfSigned,
		CertificateSecret: "fairlead-webhook-certificate",
	}
}

func (o *WebhookOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "webhook-bind-address", o.BindAddress,
		"address of the webhooks over TLS, which convert between API versions; "+noListener+" switches them off,\n"+
			"and leaves conversion as it is configured")
	flags.StringVar(&o.Service, "webhook-service", o.Service,
		"Service NAMESPACE/NAME:PORT by which the API server calls the webhooks\n"+
			"(default none: it calls this machine, by https://"+loopback+":PORT)")
	flags.StringVar(&o.CertificateSource, "webhook-certificate-source", o.CertificateSource,
		"manager of the webhooks' certificate: one of "+strings.Join(certs.Kinds, ", "))
	flags.StringVar(&o.CertificateSecret, "webhook-certificate-secret", o.CertificateSecret,
		"Secret with the certificate as tls.crt, tls.key and ca.crt, in the namespace of the lease")
	flags.StringVar(&o.CertificateDir, "webhook-certificate-dir", o.CertificateDir,
		"directory that the Secret is mounted into, to read instead of the Secret")
	flags.StringVar(&o.Memory, "webhook-memory", o.Memory,
		"memory that all conversions at a time may take, such as 256Mi; more is refused\n"+
			"(default a quarter of the memory limit of the container, 128Mi if it has none)")
}

func (o WebhookOptions) validate() error {
	if disabled(o.BindAddress) {
		return nil
	}
	host, badAddress := hostOf("--webhook-bind-address", o.BindAddress)
	_, badService := crds.ParseService(o.Service)
	if badService != nil {
		badService = fmt.Errorf("--webhook-service: %w", badService)
	}
	errs := []error{badAddress, badService}
	if ip := net.ParseIP(host); badAddress == nil && o.Service == "" && host != "" && (ip == nil || !ip.IsLoopback() && !ip.IsUnspecified()) {
		errs = append(errs, fmt.Errorf("--webhook-bind-address %q is not on a loopback address, where the API server looks for "+
			"webhooks without a Service: use %s:PORT, or name a Service with --webhook-service", o.BindAddress, loopback))
	}
	if memory, err := o.parseMemory(); err != nil {
		errs = append(errs, fmt.Errorf("--webhook-memory %q is no quantity: use one such as 256Mi", o.Memory))
	} else if o.Memory != "" && memory < conversion.MinMemory {
		errs = append(errs, fmt.Errorf("--webhook-memory %s is too little to convert large objects: use %dMi or more", o.Memory, conversion.MinMemory>>20))
	}
	source := certs.Options{Kind: o.CertificateSource, Name: o.CertificateSecret, Directory: o.CertificateDir}
	if err := source.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--webhook-certificate-source: %w", err))
	}
	return errors.Join(errs...)
}

func (o WebhookOptions) parseMemory() (int64, error) {
	if o.Memory == "" {
		return 0, nil
	}
	quantity, err := resource.ParseQuantity(o.Memory)
	return quantity.Value(), err
}

// conversionMemory is what conversions may take of an operator with a memory limit, which is 0 if there is none; the options
// are validated ones.
func (o WebhookOptions) conversionMemory(limit int64) int64 {
	if memory, _ := o.parseMemory(); memory > 0 {
		return memory
	}
	if limit == 0 {
		return conversion.DefaultMemory
	}
	return max(limit/4, conversion.MinMemory)
}

// service that the webhooks are behind, or nil; the options are validated ones.
func (o WebhookOptions) service() *apiextensionsv1.ServiceReference {
	service, _ := crds.ParseService(o.Service)
	return service
}

// localHost is where this machine serves the webhooks.
func (o WebhookOptions) localHost() string {
	host, _, _ := net.SplitHostPort(o.BindAddress)
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		return loopback
	}
	return host
}
