package meshservice

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

func ranges(services, tags string) desired.Ranges {
	return desired.Ranges{Services: netip.MustParsePrefix(services), Tags: netip.MustParsePrefix(tags)}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"as they come":        {func(*Options) {}, ""},
		"universal":           {func(o *Options) { o.Environment = "universal" }, ""},
		"another environment": {func(o *Options) { o.Environment = "vm" }, `--mesh-environment "vm" is neither kubernetes nor universal`},
		"a zone with a dot":   {func(o *Options) { o.Zone = "a.b" }, "--mesh-zone"},
		"no namespace":        {func(o *Options) { o.SystemNamespace = "" }, "--mesh-namespace"},
		"no time to answer":   {func(o *Options) { o.SwitchTimeout = 0 }, "--mesh-switch-timeout must be positive"},
		"no port":             {func(o *Options) { o.Serving.BindAddress = "127.0.0.1" }, "is not HOST:PORT"},
		"no certificate":      {func(o *Options) { o.Serving.BindAddress = ":5678" }, "needs --mesh-cert-file and --mesh-key-file"},
		"insecure, reachable": {func(o *Options) {
			o.Serving = ServingOptions{Limits: o.Serving.Limits, BindAddress: ":5678", Insecure: true}
		}, "is not a loopback address"},
		"insecure, on loopback": {func(o *Options) {
			o.Serving = ServingOptions{Limits: o.Serving.Limits, BindAddress: "127.0.0.1:5678", Insecure: true}
		}, ""},
		"served by others":            {func(o *Options) { o.Serving.Reports = true }, ""},
		"served by others, universal": {func(o *Options) { o.Environment, o.Serving.Reports = "universal", true }, ""},
		"served by this one and by others": {func(o *Options) {
			o.Serving = ServingOptions{Limits: o.Serving.Limits, BindAddress: "127.0.0.1:5678", Insecure: true, Reports: true}
		}, "--mesh-serving-reports says that other processes serve the proxies"},
		"no connections": {func(o *Options) {
			o.Serving.BindAddress, o.Serving.Insecure, o.Serving.Limits.Connections = "127.0.0.1:5678", true, 0
		},
			"--mesh-send-timeout must be positive"},
		"no time to read": {func(o *Options) {
			o.Serving.BindAddress, o.Serving.Insecure, o.Serving.Limits.SendTimeout = "127.0.0.1:5678", true, 0
		},
			"--mesh-send-timeout must be positive"},
		"universal, with tokens": {func(o *Options) {
			o.Environment, o.Serving = "universal", ServingOptions{Limits: o.Serving.Limits, BindAddress: ":5678", CertFile: "tls.crt", KeyFile: "tls.key"}
		}, "needs --mesh-client-ca-file"},
		"a negative share":      {func(o *Options) { o.NamespaceVIPs = -1 }, "--mesh-namespace-vips -1 is negative"},
		"other ranges":          {func(o *Options) { o.Ranges = ranges("10.1.0.0/30", "10.1.0.4/30") }, ""},
		"an IPv6 range":         {func(o *Options) { o.Ranges = ranges("fd00::/64", "240.0.0.0/8") }, "--mesh-service-cidr fd00::/64 is not an IPv4 range"},
		"no range":              {func(o *Options) { o.Ranges.Tags = netip.Prefix{} }, "--mesh-tag-cidr"},
		"not the first address": {func(o *Options) { o.Ranges = ranges("241.0.0.0/8", "240.1.2.3/8") }, "--mesh-tag-cidr 240.1.2.3/8 does not begin at its first address: write 240.0.0.0/8"},
		"ranges that overlap":   {func(o *Options) { o.Ranges = ranges("241.0.0.0/8", "240.0.0.0/4") }, "--mesh-service-cidr 241.0.0.0/8 and --mesh-tag-cidr 240.0.0.0/4 overlap"},
		"a range of loopback":   {func(o *Options) { o.Ranges = ranges("127.1.0.0/16", "240.0.0.0/8") }, "--mesh-service-cidr 127.1.0.0/16 overlaps the reserved range 127.0.0.0/8"},
		"all addresses":         {func(o *Options) { o.Ranges.Tags = netip.MustParsePrefix("0.0.0.0/0") }, "--mesh-tag-cidr 0.0.0.0/0 overlaps the reserved range 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/4"},
		"some of loopback":      {func(o *Options) { o.Ranges = ranges("124.0.0.0/6", "240.0.0.0/8") }, "--mesh-service-cidr 124.0.0.0/6 overlaps the reserved range 127.0.0.0/8"},
		"a range of multicast":  {func(o *Options) { o.Ranges = ranges("239.0.0.0/8", "240.0.0.0/8") }, "--mesh-service-cidr 239.0.0.0/8 overlaps the reserved range 224.0.0.0/4"},
		"a range of no address": {func(o *Options) { o.Ranges = ranges("0.1.0.0/16", "240.0.0.0/8") }, "--mesh-service-cidr 0.1.0.0/16 overlaps the reserved range 0.0.0.0/8"},
		"a certificate for :5678": {func(o *Options) {
			o.Serving = ServingOptions{Limits: o.Serving.Limits, BindAddress: ":5678", CertFile: "tls.crt", KeyFile: "tls.key"}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			c.change(&o)
			err := o.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestServeOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ServeOptions)
		want   string
	}{
		"nowhere": {func(*ServeOptions) {}, "--mesh-bind-address is missing"},
		"on loopback": {func(o *ServeOptions) {
			o.Serving.BindAddress, o.Serving.Insecure = "127.0.0.1:5678", true
		}, ""},
		"another environment": {func(o *ServeOptions) {
			o.Environment, o.Serving.BindAddress, o.Serving.Insecure = "vm", "127.0.0.1:5678", true
		}, `--mesh-environment "vm"`},
		"universal, with tokens": {func(o *ServeOptions) {
			o.Environment, o.Serving.BindAddress, o.Serving.CertFile, o.Serving.KeyFile = "universal", ":5678", "tls.crt", "tls.key"
		}, "needs --mesh-client-ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultServeOptions()
			c.change(&o)
			err := o.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestObsolete(t *testing.T) {
	got := obsoleteVariables([]string{
		"PATH=/bin", "SKIP_PERSISTED_VIPS=", "KUMA_EXPERIMENTAL_GENERATE_MESH_SERVICES=true", "GENERATE_MESH_SERVICES=1", "MY_GENERATE_MESH_SERVICES=1", "KUMA_X=GENERATE_MESH_SERVICES",
	})
	want := []string{"GENERATE_MESH_SERVICES", "KUMA_EXPERIMENTAL_GENERATE_MESH_SERVICES", "SKIP_PERSISTED_VIPS"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
