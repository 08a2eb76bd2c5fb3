package operator

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestValidateWebhooks(t *testing.T) {
	cases := map[string]struct {
		args string
		want string
	}{
		"switched off":                      {"--webhook-bind-address=0 --webhook-certificate-source=nonsense", ""},
		"another port of this machine":      {"--webhook-bind-address=127.0.0.1:9443", ""},
		"all addresses, without a Service":  {"--webhook-bind-address=:9443", ""},
		"behind a Service":                  {"--webhook-bind-address=:9443 --webhook-service=fairlead/fairlead-webhook:443", ""},
		"an address without a port":         {"--webhook-bind-address=9443", `--webhook-bind-address "9443" is not HOST:PORT`},
		"an address that nobody looks at":   {"--webhook-bind-address=192.0.2.1:9443", "name a Service with --webhook-service"},
		"that address behind a Service":     {"--webhook-bind-address=192.0.2.1:9443 --webhook-service=a/b:443", ""},
		"a Service without a namespace":     {"--webhook-service=fairlead:443", `--webhook-service: "fairlead:443" is not NAMESPACE/NAME:PORT`},
		"a Service without a port":          {"--webhook-service=fairlead/webhook", "is not NAMESPACE/NAME:PORT"},
		"a Service with port 0":             {"--webhook-service=fairlead/webhook:0", "is not NAMESPACE/NAME:PORT"},
		"a Service that cannot be":          {"--webhook-service=fairlead/Web.hook:443", "is not NAMESPACE/NAME:PORT"},
		"an unknown source":                 {"--webhook-certificate-source=vault", `"vault" is not one of self-signed, secret, cert-manager`},
		"a mounted Secret":                  {"--webhook-certificate-source=cert-manager --webhook-certificate-dir=/etc/x", ""},
		"a Secret":                          {"--webhook-certificate-source=secret --webhook-certificate-secret=x", ""},
		"neither a Secret nor a directory":  {"--webhook-certificate-source=secret --webhook-certificate-secret=", "needs a Secret or a directory"},
		"memory":                            {"--webhook-memory=256Mi", ""},
		"memory that is none":               {"--webhook-memory=much", `--webhook-memory "much" is no quantity`},
		"too little memory":                 {"--webhook-memory=1Mi", "use 32Mi or more"},
		"a directory that nobody writes to": {"--webhook-certificate-dir=/etc/x", "a self-signed certificate is kept in a Secret"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(strings.Fields(c.args)); err != nil {
				t.Fatal(err)
			}
			err := options.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLocalHost(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:0":   "127.0.0.1",
		":9443":         "127.0.0.1",
		"0.0.0.0:9443":  "127.0.0.1",
		"127.0.0.2:943": "127.0.0.2",
		"[::1]:9443":    "::1",
	} {
		if got := (WebhookOptions{BindAddress: address}).localHost(); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}
