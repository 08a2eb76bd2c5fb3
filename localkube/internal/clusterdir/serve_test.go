package clusterdir

import (
	"strings"
	"testing"
)

func TestParseService(t *testing.T) {
	tests := map[string]struct {
		text string
		want Serve
		bad  bool
	}{
		"namespace, name and port": {text: "shop/cart:443", want: Serve{Namespace: "shop", Service: "cart", Port: 443}},
		"highest port":             {text: "shop/cart:65535", want: Serve{Namespace: "shop", Service: "cart", Port: 65535}},
		"nothing":                  {text: "", bad: true},
		"no namespace":             {text: "cart:443", bad: true},
		"empty namespace":          {text: "/cart:443", bad: true},
		"empty name":               {text: "shop/:443", bad: true},
		"no port":                  {text: "shop/cart", bad: true},
		"named port":               {text: "shop/cart:https", bad: true},
		"port 0":                   {text: "shop/cart:0", bad: true},
		"port too high":            {text: "shop/cart:65536", bad: true},
		"two ports":                {text: "shop/cart:443:444", bad: true},
		"two slashes":              {text: "a/shop/cart:443", bad: true},
		"capitals":                 {text: "Shop/cart:443", bad: true},
		"dotted":                   {text: "shop/cart.svc:443", bad: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseService(test.text)
			switch {
			case test.bad && (err == nil || !strings.Contains(err.Error(), "--service must be NS/NAME:PORT")):
				t.Errorf("error is %v, want the form that is expected", err)
			case !test.bad && (err != nil || got != test.want):
				t.Errorf("read as %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestParseLocal(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no port": "127.0.0.1", "port 0": "127.0.0.1:0", "no address": ":8443",
		"every interface": "0.0.0.0:8443", "another machine": "192.0.2.1:8443", "a name": "localhost:8443",
	} {
		t.Run(name, func(t *testing.T) {
			if to, err := ParseLocal(text); err == nil || !strings.Contains(err.Error(), "--to must be 127.0.0.1:PORT") {
				t.Errorf("read as %q, %v, want it refused", to, err)
			}
		})
	}
	if to, err := ParseLocal("127.0.0.1:8443"); err != nil || to != "127.0.0.1:8443" {
		t.Errorf("127.0.0.1:8443 is read as %q, %v", to, err)
	}
}

func TestIstiodValidate(t *testing.T) {
	tests := map[string]struct {
		istiod Istiod
		error  string
	}{
		"named revision":     {istiod: Istiod{Revision: "v1-24-0", Namespace: "istio-system"}},
		"no revision":        {istiod: Istiod{Namespace: "istio-system"}, error: "--revision"},
		"a path as revision": {istiod: Istiod{Revision: "../../etc", Namespace: "istio-system"}, error: "--revision"},
		"a version":          {istiod: Istiod{Revision: "1.24.0", Namespace: "istio-system"}, error: "--revision"},
		"no namespace":       {istiod: Istiod{Revision: "a"}, error: "--namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { checkError(t, test.istiod.Validate(), test.error) })
	}
}
