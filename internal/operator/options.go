package operator

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
)

// Options are what the flags of `fairlead operator` set.
type Options struct {
	Passages                    []string
	TakeOver                    []string
	InstallCRDs                 bool
	LeaderElection              bool
	LeaderElectionNamespace     string
	LeaderElectionLeaseDuration time.Duration

	HealthProbeBindAddress     string
	MetricsBindAddress         string
	MetricsInsecureBindAddress string

	LogFormat string
	LogLevel  string

	// Profiles serves pprof besides metrics.
	Profiles bool
	Tracing  TracingOptions

	Webhook WebhookOptions

	// Charts say where Istio's charts come from.
	Charts charts.Options
	// Members limit the requests to member clusters.
	Members member.Limits
	// Rollout says where environmentd is found, and how long a request to it may take.
	Rollout environmentd.Options
	// Mesh names the zone and the system namespace of the mesh.
	Mesh meshservice.Options
}

// noListener as a bind address switches that listener off.
const noListener = "0"

// A free port of the loopback interface: several operators can run on one machine, and none is reachable from outside
// it by default.
const loopbackAnyPort = "127.0.0.1:0"

// DefaultOptions suit an operator that is started by hand with nothing but a kubeconfig.
func DefaultOptions() Options {
	return Options{
		InstallCRDs:                 true,
		LeaderElection:              true,
		LeaderElectionLeaseDuration: defaultLeaseDuration,
		HealthProbeBindAddress:      loopbackAnyPort,
		MetricsBindAddress:          loopbackAnyPort,
		LogFormat:                   LogFormats[0],
		LogLevel:                    "info",
		Tracing:                     TracingOptions{Ratio: 1},
		Webhook:                     defaultWebhookOptions(),
		Members:                     member.DefaultLimits(),
		Rollout:                     environmentd.DefaultOptions(),
		Mesh:                        meshservice.DefaultOptions(),
	}
}

// AddFlags registers a flag for every option; what the options hold already is the default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Passages, "passages", o.Passages,
		"passages to run, comma-separated (default all: "+strings.Join(Names(), ",")+")")
	flags.StringSliceVar(&o.TakeOver, "take-over", o.TakeOver,
		"passages to take over from another system, comma-separated, once its controllers no longer run: they hold otherwise")
	flags.BoolVar(&o.InstallCRDs, "install-crds", o.InstallCRDs,
		"install and upgrade the CRDs before starting")
	flags.BoolVar(&o.LeaderElection, "leader-elect", o.LeaderElection,
		"let only one of several operators act on a passage at a time, wherever they run; each passage has a lease in "+lease.Namespace)
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace,
		"namespace of the lease of older versions, which is held besides, and of the Secret of the webhook certificate\n"+
			"(default the operator's own namespace, outside the cluster "+leaseNamespaceOutside+")")
	flags.DurationVar(&o.LeaderElectionLeaseDuration, "leader-election-lease-duration", o.LeaderElectionLeaseDuration,
		"how long another operator waits before it replaces a leader that no longer renews its lease")
	o.addProcessFlags(flags)
	o.Tracing.addFlags(flags)
	o.Webhook.addFlags(flags)
	o.Charts.AddFlags(flags)
	o.Members.AddFlags(flags)
	o.Rollout.AddFlags(flags)
	o.Mesh.AddFlags(flags)
}

// addProcessFlags registers the flags of any process: probes, metrics and the log.
func (o *Options) addProcessFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"address of /healthz and /readyz; "+noListener+" switches them off")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"address of /metrics over TLS, for callers with a token that may get /metrics; "+noListener+" switches it off")
	flags.StringVar(&o.MetricsInsecureBindAddress, "metrics-insecure-bind-address", o.MetricsInsecureBindAddress,
		"address of /metrics without TLS or token, on a loopback interface only")
	flags.BoolVar(&o.Profiles, "pprof", o.Profiles,
		"serve profiles at /debug/pprof/ of --metrics-bind-address, for callers with a token that may get /debug/pprof/*")
	flags.StringVar(&o.LogFormat, "log-format", o.LogFormat, "one of "+strings.Join(LogFormats, ", "))
	flags.StringVar(&o.LogLevel, "log-level", o.LogLevel, "one of "+strings.Join(LogLevels, ", "))
}

// Validate refuses options that cannot work, each with its remedy.
func (o Options) Validate() error {
	_, unknownPassage := selectPassages(Passages(), o.Passages)
	return errors.Join(
		unknownPassage,
		validateTakeOver(o.TakeOver, o.Passages),
		validateLease(o.LeaderElectionLeaseDuration),
		o.validateProcess(),
		o.Tracing.validate(),
		o.Webhook.validate(),
		o.Charts.Validate(),
		o.Members.Validate(),
		o.Rollout.Validate(),
		o.Mesh.Validate(),
	)
}

func (o Options) validateProcess() error {
	return errors.Join(
		validateAddress("--health-probe-bind-address", o.HealthProbeBindAddress),
		validateAddress("--metrics-bind-address", o.MetricsBindAddress),
		validateLoopback("--metrics-insecure-bind-address", o.MetricsInsecureBindAddress),
		oneOf("--log-format", o.LogFormat, LogFormats),
		oneOf("--log-level", o.LogLevel, LogLevels),
	)
}

func validateAddress(flag, address string) error {
	if disabled(address) {
		return nil
	}
	_, err := hostOf(flag, address)
	return err
}

// hostOf is the host of HOST:PORT.
func hostOf(flag, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%s %q is not HOST:PORT", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%s %q has no port from 0 to 65535", flag, address)
	}
	return host, nil
}

func validateLoopback(flag, address string) error {
	if disabled(address) {
		return nil
	}
	host, err := hostOf(flag, address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s %q is not a loopback address: unprotected metrics stay on this machine; "+
		"use 127.0.0.1:PORT, or --metrics-bind-address to serve others", flag, address)
}

func oneOf(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q is not one of %s", flag, value, strings.Join(allowed, ", "))
}

func disabled(address string) bool {
	return address == "" || address == noListener
}
