package meshservice

import (
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"as they come":          {func(*Options) {}, ""},
		"universal":             {func(o *Options) { o.Environment = "universal" }, ""},
		"another environment":   {func(o *Options) { o.Environment = "vm" }, `--mesh-environment "vm" is neither kubernetes nor universal`},
		"a zone with a dot":     {func(o *Options) { o.Zone = "a.b" }, "--mesh-zone"},
		"no namespace":          {func(o *Options) { o.Namespace = "" }, "--mesh-namespace"},
		"no time to answer":     {func(o *Options) { o.SwitchTimeout = 0 }, "--mesh-switch-timeout must be positive"},
		"no port":               {func(o *Options) { o.Serving.BindAddress = "127.0.0.1" }, "is not HOST:PORT"},
		"no certificate":        {func(o *Options) { o.Serving.BindAddress = ":5678" }, "needs --mesh-cert-file and --mesh-key-file"},
		"insecure, reachable":   {func(o *Options) { o.Serving = ServingOptions{BindAddress: ":5678", Insecure: true} }, "can be reached from elsewhere"},
		"insecure, on loopback": {func(o *Options) { o.Serving = ServingOptions{BindAddress: "127.0.0.1:5678", Insecure: true} }, ""},
		"a pod without a name":  {func(o *Options) { o.Serving = ServingOptions{BindAddress: "127.0.0.1:5678", Insecure: true, Pod: "x"} }, "--mesh-pod"},
		"universal, with tokens": {func(o *Options) {
			o.Environment, o.Serving = "universal", ServingOptions{BindAddress: ":5678", CertFile: "tls.crt", KeyFile: "tls.key"}
		}, "needs --mesh-client-ca-file"},
		"a certificate for :5678": {func(o *Options) {
			o.Serving = ServingOptions{BindAddress: ":5678", CertFile: "tls.crt", KeyFile: "tls.key"}
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
