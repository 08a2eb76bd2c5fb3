package operator_test

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// permission is what RBAC grants: a verb on a resource.
type permission struct {
	verb     string
	resource string // as in "istios.sailoperator.io/status"
}

func (p permission) String() string { return p.verb + " " + p.resource }

// call is a request that an operator made, and how the API server answered.
type call struct {
	permission
	namespace, name string
	status          int
}

func (c call) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s/%s", c.status, c.permission, c.namespace, c.name))
}

// recorder stands between an operator and its API server, and keeps a record of what is asked for and granted.
type recorder struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

var requestInfo = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func startRecorder(t testing.TB, config *rest.Config) *recorder {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever calls shows a token of their own.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	r.Server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Transport:      transport,
		FlushInterval:  -1,
		Rewrite:        func(out *httputil.ProxyRequest) { out.SetURL(target) },
		ModifyResponse: r.record,
		// A client that goes away in the middle of a watch is no news.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *recorder) record(response *http.Response) error {
	info, err := requestInfo.NewRequestInfo(response.Request)
	if err != nil || !info.IsResourceRequest {
		return nil
	}
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	made := call{permission{info.Verb, resource}, info.Namespace, info.Name, response.StatusCode}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, made)
	if info.Verb == "patch" && response.StatusCode == http.StatusCreated {
		// Server-side apply of what is not there: the API server has asked for both permissions.
		made.verb = "create"
		r.calls = append(r.calls, made)
	}
	return nil
}

func (r *recorder) made(match func(call) bool) []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.calls), func(c call) bool { return !match(c) })
}

// used are the permissions that the operator has used so far.
func (r *recorder) used() map[permission]bool {
	all := map[permission]bool{}
	for _, c := range r.made(func(call) bool { return true }) {
		all[c.permission] = true
	}
	return all
}

// unused are those of the granted permissions that the operator has not used yet.
func (r *recorder) unused(granted map[permission]bool) map[permission]bool {
	used, left := r.used(), maps.Clone(granted)
	maps.DeleteFunc(left, func(p permission, _ bool) bool { return used[p] })
	return left
}

func refused(c call) bool { return c.status == http.StatusForbidden }

// changes matches what changes the cluster, other than leases, events and reviews.
func changes(c call) bool {
	switch {
	case c.verb == "get" || c.verb == "list" || c.verb == "watch":
		return false
	case strings.HasPrefix(c.resource, "leases."), strings.HasPrefix(c.resource, "events."), strings.Contains(c.resource, "reviews."):
		return false
	}
	return true
}

// kubeconfigFor leads through the recorder.
func (r *recorder) kubeconfigFor(t testing.TB, token string) string {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	return kubeconfig(t, r.URL, ca, token)
}
