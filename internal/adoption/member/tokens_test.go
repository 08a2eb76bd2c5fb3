package member

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// issued is when the tokens of the tests were.
var issued = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// A token is renewed when a third of its lifetime is left, whatever lifetime the cluster has granted.
func TestRenewal(t *testing.T) {
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

// A token is renewed for the account that it is of; one that cannot be renewed stays, and the cluster stays ready.
func TestRenewToken(t *testing.T) {
	due, early := issued.Add(TokenLifetime*2/3), issued.Add(TokenLifetime/2)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, account, errors.New("no"))
	for name, c := range map[string]struct {
		now      time.Time
		secret   func(*corev1.Secret)
		inMember error
		// rejoined has another client write the Secret before the operator does.
		rejoined bool
		// requested is the account that a token is requested for.
		requested string
		renewed   bool
	}{
		"not due":                             {now: early},
		"due":                                 {now: due, requested: account, renewed: true},
		"of a user, who has named no account": {now: due, secret: func(s *corev1.Secret) { delete(s.Annotations, model.AnnotationAccount) }},
		"issued at an unknown time":           {now: due, secret: func(s *corev1.Secret) { s.Annotations[model.AnnotationIssued] = "yesterday" }},
		"expires at an unknown time":          {now: due, secret: func(s *corev1.Secret) { delete(s.Annotations, model.AnnotationExpires) }},
		"of an account that is gone":          {now: due, secret: func(s *corev1.Secret) { s.Annotations[model.AnnotationAccount] = "hub-former" }, requested: "hub-former"},
		"the cluster refuses":                 {now: due, inMember: forbidden, requested: account},
		"the cluster has joined meanwhile":    {now: due, rejoined: true, requested: account},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, func(_ *clusterv1alpha1.Cluster, secret *corev1.Secret) {
				if c.secret != nil {
					c.secret(secret)
				}
			})
			o.now = func() time.Time { return c.now }
			m, err := o.members.Connect(t.Context(), o.cluster(t))
			if err != nil {
				t.Fatal(err)
			}
			west := adoptiontest.NewAPI(t, nil, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: model.MemberNamespace, Name: account}})
			m.API = west
			requested := ""
			west.On = func(verb string, object client.Object) error {
				if _, ok := object.(*corev1.ServiceAccount); !ok || verb != "create token" {
					t.Errorf("%s %s", verb, object.GetName())
				}
				requested += object.GetName()
				return c.inMember
			}
			want := "former"
			if c.rejoined {
				want = "of the join"
				o.hub.On = func(verb string, object client.Object) error {
					if _, ok := object.(*corev1.Secret); ok && verb == "update" {
						o.hub.On = nil
						secret := read(t, o.hub, "karmada-cluster/west", &corev1.Secret{})
						secret.Data[secretToken] = []byte(want)
						return o.hub.Update(t.Context(), secret)
					}
					return nil
				}
			}
			if result := o.reconcile(t); result.RequeueAfter != checkInterval {
				t.Errorf("checked again after %s", result.RequeueAfter)
			}
			if requested != c.requested {
				t.Errorf("requested for %q", requested)
			}
			now := read(t, o.hub, "karmada-cluster/west", &corev1.Secret{})
			if c.renewed {
				if isRenewalDue(now, c.now) || string(now.Data[secretToken]) != "fake-token" || string(now.Data[secretAuthority]) != string(o.server.authority()) {
					t.Errorf("the Secret has %v, %v", now.Annotations, now.Data)
				}
			} else if got := string(now.Data[secretToken]); got != want {
				t.Errorf("the token is %s", got)
			}
			if !meta.IsStatusConditionTrue(o.cluster(t).Status.Conditions, clusterv1alpha1.ConditionReady) {
				t.Error("the cluster is not ready, though its token is accepted")
			}
		})
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
