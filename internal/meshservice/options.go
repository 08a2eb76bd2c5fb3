package meshservice

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/xds/server"
)

// Options of the passage.
type Options struct {
	// ZoneInfo is the zone of the served proxies.
	desired.ZoneInfo
	// Ranges are the CIDRs of VIPs.
	Ranges desired.Ranges
	// NamespaceVIPs is how many VIPs of each range one namespace may have; 0 is the default.
	NamespaceVIPs int
	// Grace is how long a generated MeshService outlives its Dataplanes.
	Grace time.Duration
	// SwitchTimeout is how long a proxy may take to acknowledge a switch.
	SwitchTimeout time.Duration
	// TakenOver is closed once what another control plane has generated is taken over; nil if there is nothing to wait for.
	TakenOver <-chan struct{}

	Serving ServingOptions
}

// DefaultOptions suit a mesh of one zone on Kubernetes.
func DefaultOptions() Options {
	return Options{
		ZoneInfo: desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "default", SystemNamespace: "kuma-system"},
		Ranges:   desired.Ranges{}.OrDefaults(), Grace: time.Minute, SwitchTimeout: time.Minute,
		Serving: ServingOptions{Limits: server.DefaultLimits()},
	}
}

// AddFlags registers a flag for every option; the current values are the defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	addZoneFlags(&o.ZoneInfo, flags)
	flags.TextVar(&o.Ranges.Services, "mesh-service-cidr", o.Ranges.Services,
		"IPv4 range for VIPs of MeshServices and MeshMultiZoneServices without a ClusterIP")
	flags.TextVar(&o.Ranges.Tags, "mesh-tag-cidr", o.Ranges.Tags, "IPv4 range for VIPs of values of kuma.io/service")
	flags.IntVar(&o.NamespaceVIPs, "mesh-namespace-vips", o.NamespaceVIPs,
		"how many VIPs of each range the services of one namespace may have; 0: half of the range, up to 8192")
	flags.DurationVar(&o.Grace, "mesh-service-grace", o.Grace,
		"in universal, how long a MeshService is kept after its last Dataplane is deleted")
	flags.DurationVar(&o.SwitchTimeout, "mesh-switch-timeout", o.SwitchTimeout,
		"how long a proxy may take to acknowledge the configuration of a switched consumer")
	flags.BoolVar(&o.Serving.Reports, "mesh-serving-reports", o.Serving.Reports,
		"processes of `fairlead serve-mesh` serve the proxies; the operator reads their MeshServingReports")
	o.Serving.addFlags(flags)
}

func addZoneFlags(o *desired.ZoneInfo, flags *pflag.FlagSet) {
	flags.StringVar(&o.Environment, "mesh-environment", o.Environment,
		"kubernetes makes Dataplanes of pods and MeshServices of Services, universal makes MeshServices of Dataplanes")
	flags.StringVar(&o.Zone, "mesh-zone", o.Zone, "zone of the proxies that are served")
	flags.StringVar(&o.SystemNamespace, "mesh-namespace", o.SystemNamespace, "system namespace: resources synced from other zones, HostnameGenerators and the record of VIPs")
}

// Validate rejects invalid options, each with its remedy.
func (o Options) Validate() error {
	var times error
	if o.Grace < 0 || o.SwitchTimeout <= 0 {
		times = errors.New("--mesh-service-grace cannot be negative, and --mesh-switch-timeout must be positive")
	}
	if o.NamespaceVIPs < 0 {
		times = errors.Join(times, fmt.Errorf("--mesh-namespace-vips %d is negative: give a number of VIPs, or 0 for the default", o.NamespaceVIPs))
	}
	return errors.Join(times, validateServing(o.ZoneInfo, o.Serving), validateRanges(o.Ranges))
}

// validateServing checks where proxies are served, and how.
func validateServing(where desired.ZoneInfo, serving ServingOptions) error {
	var environment, identity error
	if where.Environment != desired.Kubernetes && where.Environment != desired.Universal {
		environment = fmt.Errorf("--mesh-environment %q is neither %s nor %s", where.Environment, desired.Kubernetes, desired.Universal)
	}
	if where.IsUniversal() && serving.BindAddress != "" && !serving.Insecure && serving.ClientCAFile == "" {
		identity = errors.New("--mesh-environment universal needs --mesh-client-ca-file: universal proxies have no service account token to authenticate with")
	}
	return errors.Join(environment, identity, validateLabel("--mesh-zone", where.Zone), validateLabel("--mesh-namespace", where.SystemNamespace), serving.validate())
}

// validateLabel checks a zone or namespace, which become parts of names.
func validateLabel(flag, value string) error {
	if wrong := validation.IsDNS1123Label(value); len(wrong) > 0 {
		return fmt.Errorf("%s %q: %s", flag, value, wrong[0])
	}
	return nil
}

// validateRanges rejects ranges without usable addresses, and ranges that overlap.
func validateRanges(ranges desired.Ranges) error {
	err := errors.Join(validateRange("--mesh-service-cidr", ranges.Services), validateRange("--mesh-tag-cidr", ranges.Tags))
	if err == nil && ranges.Services.Overlaps(ranges.Tags) {
		err = fmt.Errorf("--mesh-service-cidr %s and --mesh-tag-cidr %s overlap: give two ranges that share no address",
			ranges.Services, ranges.Tags)
	}
	return err
}

func validateRange(flag string, r netip.Prefix) error {
	switch {
	case !r.IsValid() || !r.Addr().Is4():
		return fmt.Errorf("%s %s is not an IPv4 range: give one such as 241.0.0.0/8", flag, r)
	case r.Masked() != r:
		return fmt.Errorf("%s %s does not begin at its first address: write %s", flag, r, r.Masked())
	}
	var overlaps []string
	for _, reserved := range []string{"0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4"} {
		if r.Overlaps(netip.MustParsePrefix(reserved)) {
			overlaps = append(overlaps, reserved)
		}
	}
	if len(overlaps) > 0 {
		return fmt.Errorf("%s %s overlaps the reserved range %s: give one such as 241.0.0.0/8", flag, r, strings.Join(overlaps, ", "))
	}
	return nil
}

var obsoleteOptions = []string{"GENERATE_MESH_SERVICES", "SKIP_PERSISTED_VIPS"}

// obsoleteVariables returns the obsolete environment variables that are set, sorted.
func obsoleteVariables(environ []string) []string {
	var all []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		for _, old := range obsoleteOptions {
			if name == old || strings.HasPrefix(name, "KUMA_") && strings.HasSuffix(name, "_"+old) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

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
	// Reports says that processes of `fairlead serve-mesh` serve the proxies, and report what these have acknowledged.
	Reports bool
	// Limits bound what clients can take of the server.
	Limits server.Limits
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
	flags.IntVar(&o.Limits.Connections, "mesh-max-connections", o.Limits.Connections, "connections to the xDS server; more are closed at once")
	flags.IntVar(&o.Limits.Pending, "mesh-max-pending", o.Limits.Pending,
		"connections, and streams, of clients that are not identified yet; for a further one, the oldest of the address with the most is closed")
	flags.IntVar(&o.Limits.Streams, "mesh-max-streams", o.Limits.Streams, "streams of one connection, and of one proxy")
	flags.IntVar(&o.Limits.Handshakes, "mesh-max-handshakes", o.Limits.Handshakes, "connections that begin in a second; further ones wait")
	flags.IntVar(&o.Limits.TokenReviews, "mesh-max-token-reviews", o.Limits.TokenReviews,
		"TokenReviews in a second; further tokens wait")
	flags.IntVar(&o.Limits.RequestBytes, "mesh-max-request-bytes", o.Limits.RequestBytes, "size of a request of a proxy")
	flags.DurationVar(&o.Limits.SendTimeout, "mesh-send-timeout", o.Limits.SendTimeout,
		"how long a proxy may take to read a response before its connection is closed")
}

// enabled says that proxies are served, by this process or by others.
func (o ServingOptions) enabled() bool { return o.BindAddress != "" || o.Reports }

func (o ServingOptions) validate() error {
	if o.BindAddress != "" && o.Reports {
		return errors.New("--mesh-serving-reports says that other processes serve the proxies, and --mesh-bind-address that this one does: give one of the two")
	}
	if o.BindAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.BindAddress)
	if err != nil {
		return fmt.Errorf("--mesh-bind-address %q is not HOST:PORT", o.BindAddress)
	}
	if l := o.Limits; min(l.Connections, l.Pending, l.Streams, l.Handshakes, l.TokenReviews, l.RequestBytes) <= 0 || l.SendTimeout <= 0 {
		return errors.New("--mesh-max-connections, --mesh-max-pending, --mesh-max-streams, --mesh-max-handshakes, --mesh-max-token-reviews, " +
			"--mesh-max-request-bytes and --mesh-send-timeout must be positive")
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
