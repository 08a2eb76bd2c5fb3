package environmentd

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/pflag"
)

// DefaultURL is where the environmentd of a generation is reachable inside the cluster.
const DefaultURL = "http://mz{{.ResourceID}}-environmentd-{{.Generation}}.{{.Namespace}}.svc.cluster.local:6878"

// DefaultTimeout is short: a worker that waits for an environmentd reconciles no other environment.
const DefaultTimeout = 3 * time.Second

// Options of a Client.
type Options struct {
	// URL is a Go template over the fields of Address; empty means DefaultURL.
	URL string
	// Timeout of a request; 0 means DefaultTimeout.
	Timeout time.Duration
}

// DefaultOptions are those of an operator inside the cluster.
func DefaultOptions() Options { return Options{Timeout: DefaultTimeout} }

// Address identifies the environmentd of one generation.
type Address struct {
	Name       string
	Namespace  string
	ResourceID string
	Generation int64
}

// AddFlags registers a flag for every option, with the current value as its default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.URL, "environmentd-url", o.URL,
		"where the environmentd of a generation answers: a Go template over .Name .Namespace .ResourceID .Generation\n"+
			"(default "+DefaultURL+")")
	flags.DurationVar(&o.Timeout, "environmentd-timeout", o.Timeout,
		"how long a request to an environmentd may take before it fails, and is tried again later")
}

// Validate rejects options that cannot work, each with its remedy.
func (o Options) Validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("--environmentd-timeout %s is negative", o.Timeout)
	}
	t, err := o.template()
	if err != nil {
		return err
	}
	_, err = baseURL(t, Address{Name: "name", Namespace: "namespace", ResourceID: "a1b2c3d4e5", Generation: 1})
	return err
}

func (o Options) template() (*template.Template, error) {
	text := cmp.Or(o.URL, DefaultURL)
	t, err := template.New("--environmentd-url").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--environmentd-url %q is not a Go template: %w", text, err)
	}
	return t, nil
}

// baseURL of the environmentd at an address.
func baseURL(t *template.Template, address Address) (string, error) {
	var text strings.Builder
	if err := t.Execute(&text, address); err != nil {
		return "", fmt.Errorf("--environmentd-url has .Name, .Namespace, .ResourceID and .Generation only: %w", err)
	}
	base, err := url.Parse(text.String())
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return "", fmt.Errorf("--environmentd-url gives %q, which is not http://HOST or https://HOST", text.String())
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("--environmentd-url gives %q: paths are added to it, so it cannot have a query or a fragment", text.String())
	}
	return strings.TrimSuffix(text.String(), "/"), nil
}
