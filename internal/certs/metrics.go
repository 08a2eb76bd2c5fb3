package certs

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	notBefore = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_certificate_not_before_timestamp_seconds",
		Help: "When the certificate that this process serves becomes valid: webhook, or mesh for that of the xDS server.",
	}, []string{"certificate"})
	notAfter = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_certificate_not_after_timestamp_seconds",
		Help: "When the certificate that this process serves expires: webhook, or mesh for that of the xDS server.",
	}, []string{"certificate"})
)

func init() { metrics.Registry.MustRegister(notBefore, notAfter) }

// RecordValidity records the validity of a certificate that is served from now on.
func RecordValidity(name string, certificate *x509.Certificate) {
	notBefore.WithLabelValues(name).Set(float64(certificate.NotBefore.Unix()))
	notAfter.WithLabelValues(name).Set(float64(certificate.NotAfter.Unix()))
}
