package crds

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// ledger is trust that remembers what it was told.
type ledger struct {
	own  string
	seen []string
}

func (l *ledger) Bundle(published []byte, drop bool) []byte {
	if drop || len(published) == 0 || string(published) == l.own {
		return []byte(l.own)
	}
	return append(append([]byte{}, published...), l.own...)
}
func (l *ledger) Published(bundle []byte) { l.seen = append(l.seen, string(bundle)) }
func (*ledger) Changed() <-chan struct{}  { return nil }

func TestConversion(t *testing.T) {
	other := serveTLS(t)
	ours := func() *crdBuilder { return makeCRD("boats").Schema(1).Next("v2", "") }
	at := func(url, bundle string) *apiextensionsv1.CustomResourceDefinition {
		crd := ours().Webhook().Bundle(bundle).Obj()
		crd.Spec.Conversion.Webhook.ClientConfig.URL = ptr.To(url + ConversionPath)
		return crd
	}
	const mine, gone = "https://127.0.0.1:7", "https://127.0.0.1:1"
	service := &apiextensionsv1.ServiceReference{Namespace: "fairlead", Name: "webhook", Port: ptr.To[int32](443)}
	behind := func(bundle string) *apiextensionsv1.CustomResourceConversion {
		return ours().ByService("fairlead", "webhook").Bundle(bundle).Obj().Spec.Conversion
	}
	cases := map[string]struct {
		live    *apiextensionsv1.CustomResourceDefinition
		service *apiextensionsv1.ServiceReference
		leads   bool // and takes over
		want    *apiextensionsv1.CustomResourceConversion
		seen    []string
	}{
		"no CRD yet":           {nil, nil, false, at(mine, "A").Spec.Conversion, nil},
		"no conversion yet":    {ours().Served().Obj(), nil, false, at(mine, "A").Spec.Conversion, nil},
		"ours already":         {at(mine, "A"), nil, false, at(mine, "A").Spec.Conversion, []string{"A"}},
		"the authority is new": {at(mine, "B"), nil, false, at(mine, "BA").Spec.Conversion, []string{"B"}},
		"the old authority is not needed any more": {at(mine, "BA"), nil, true, at(mine, "A").Spec.Conversion, []string{"BA"}},
		"another process that is gone":             {at(gone, "A"), nil, false, at(mine, "A").Spec.Conversion, nil},
		"another process that serves": {
			at(other.url, other.bundle), nil, false, at(other.url, other.bundle).Spec.Conversion, nil,
		},
		"another process that serves, but does not lead": {
			at(other.url, other.bundle), nil, true, at(mine, "A").Spec.Conversion, nil,
		},
		"whoever has its port now is not trusted": {at(other.url, "A"), nil, false, at(mine, "A").Spec.Conversion, nil},
		"a process that is not on this machine": {
			at("https://192.0.2.1:443", "B"), nil, false, at("https://192.0.2.1:443", "B").Spec.Conversion, nil,
		},
		"a former owner's webhook": {
			makeCRD("boats").ByService("theirs", "webhook").Bundle("B").Obj(), nil, false, at(mine, "A").Spec.Conversion, nil,
		},
		"a Service takes over from a process that serves": {
			at(other.url, other.bundle), service, true, behind("A"), nil,
		},
		"a Service takes over from a process that is gone": {
			at(gone, "B"), service, false, behind("BA"), nil,
		},
		"behind the Service already": {
			ours().ByService("fairlead", "webhook").Bundle("A").Obj(), service, false, behind("A"), []string{"A"},
		},
		"another Service": {
			ours().ByService("old", "webhook").Bundle("B").Obj(), service, true, behind("A"), nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			trust := &ledger{own: "A"}
			elected := make(chan struct{})
			if c.leads {
				close(elected)
			}
			w := &Webhook{Service: c.service, URL: mine, Trust: trust, Elected: elected}
			got := w.conversion(t.Context(), &installer{}, c.live, c.leads)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.seen, trust.seen); diff != "" {
				t.Errorf("what was published: %s", diff)
			}
		})
	}
}

func TestConverts(t *testing.T) {
	want := makeCRD("boats").Schema(2).Next("v2", "").Obj()
	cases := map[string]struct {
		live *apiextensionsv1.CustomResourceDefinition
		want bool
	}{
		"ours":                       {makeCRD("boats").Schema(2).Next("v2", "").Obj(), true},
		"an older one of ours":       {makeCRD("boats").Schema(1).Obj(), true},
		"a newer one, same versions": {makeCRD("boats").Schema(3).Next("v2", "crew").Obj(), true},
		"a newer one, more versions": {makeCRD("boats").Schema(3).Next("v2", "").Next("v3", "").Obj(), false},
		"somebody else's":            {makeCRD("boats").Obj(), false},
		"one just taken over":        {makeCRD("boats").Schema(0).Obj(), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := convertsAllVersions(c.live, want); got != c.want {
				t.Errorf("converts: %t", got)
			}
		})
	}
}

// neighbour is another process of this machine.
type neighbour struct{ url, bundle string }

func serveTLS(t *testing.T) neighbour {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of those that do not trust it
	server.StartTLS()
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return neighbour{server.URL, string(bundle)}
}
