package member

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A token is renewed when a third of its lifetime is left, whatever lifetime the cluster has granted.
func TestRenewal(t *testing.T) {
	issued := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		lifetime, age time.Duration
		want          bool
	}{
		"new":                       {30 * 24 * time.Hour, 0, false},
		"more than a third is left": {3 * time.Hour, 2*time.Hour - time.Second, false},
		"a third is left":           {3 * time.Hour, 2 * time.Hour, true},
		"expired":                   {3 * time.Hour, 4 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{}
			storeToken(secret, "hub-1", authenticationv1.TokenRequestStatus{Token: "t", ExpirationTimestamp: metav1.NewTime(issued.Add(c.lifetime))}, issued)
			if got := isRenewalDue(secret, issued.Add(c.age)); got != c.want {
				t.Errorf("got %t", got)
			}
			if string(secret.Data[secretToken]) != "t" || secret.Annotations[model.AnnotationAccount] != "hub-1" {
				t.Errorf("the Secret has %s of %v", secret.Data[secretToken], secret.Annotations)
			}
		})
	}
	if isRenewalDue(&corev1.Secret{}, issued) {
		t.Error("a token of unknown age is renewed")
	}
}

func TestValidateJoin(t *testing.T) {
	for name, c := range map[string]struct {
		name   string
		change func(*rest.Config)
		want   string
	}{
		"a good name":       {"west", nil, ""},
		"the longest name":  {strings.Repeat("a", maxClusterName), nil, ""},
		"too long":          {strings.Repeat("a", maxClusterName+1), nil, "use at most 52 characters, because of namespace karmada-es-NAME"},
		"capitals":          {"West", nil, `"West" cannot be the name of a cluster`},
		"dots":              {"west.eu", nil, `"west.eu" cannot be the name of a cluster`},
		"empty":             {"", nil, `"" cannot be the name of a cluster`},
		"no certificate":    {"west", func(c *rest.Config) { c.Insecure = true }, "insecure-skip-tls-verify"},
		"a server name":     {"west", func(c *rest.Config) { c.ServerName = "x" }, "tls-server-name"},
		"a proxy":           {"west", func(c *rest.Config) { c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } }, "proxy-url"},
		"nothing but a CA ": {"west", func(c *rest.Config) { c.CAData = []byte("x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{Host: "https://west"}
			if c.change != nil {
				c.change(config)
			}
			err := validateJoin(c.name, config)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"default":  {DefaultLimits(), ""},
		"no limit": {Limits{QPS: -1}, ""},
		"no QPS":   {Limits{Burst: 1}, "--member-qps 0"},
		"no burst": {Limits{QPS: 1}, "--member-burst 0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.limits.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
