package member

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// hostileCluster answers requests for ConfigMaps by itself, and all others as a cluster does.
func hostileCluster(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	served := newVersionServer(t)
	served.answer("/api/v1", `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") || strings.Contains(r.URL.Path, "/configmaps/") {
			answer(w, r)
			return
		}
		served.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	o := newOperator(t, func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.APIEndpoint = server.URL })
	m, err := o.members.Connect(t.Context(), o.cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A cluster does not lead the requests of the hub, with their bodies and its token, to other servers.
func TestRedirectOfACluster(t *testing.T) {
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			reached := 0
			elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
			defer elsewhere.Close()
			m := hostileCluster(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/internal", code) })
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}
			for verb, err := range map[string]error{
				"get": m.API.Get(t.Context(), client.ObjectKeyFromObject(object), &corev1.ConfigMap{}), "create": m.API.Create(t.Context(), object),
			} {
				if err == nil || !strings.Contains(err.Error(), "which is not followed") {
					t.Errorf("%s: %v", verb, err)
				}
			}
			if reached > 0 {
				t.Errorf("the other server got %d requests", reached)
			}
		})
	}
}

// An answer without an end does not fill the memory of the hub, nor do several at a time.
func TestEndlessAnswerOfACluster(t *testing.T) {
	before := debug.SetMemoryLimit(256 << 20)
	defer debug.SetMemoryLimit(before)
	const sent = 2 * minAnswerBytes
	m := hostileCluster(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"`)
		for block, n := strings.Repeat("a", 1<<20), 0; n < sent; n += len(block) {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}}`)
	})
	err := m.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "it"}, &corev1.ConfigMap{})
	if err == nil || !strings.Contains(err.Error(), "the answers of cluster west take more than the 32 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestAnswersShareALimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") }))
	defer server.Close()
	limits := &answerLimits{cluster: "west", limit: 15}
	get := func() io.ReadCloser {
		request, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&answerLimiter{base: http.DefaultTransport, answerLimits: limits}).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		return response.Body
	}
	first, second, third := get(), get(), get()
	if _, err := io.ReadAll(first); err != nil {
		t.Errorf("the first: %v", err)
	}
	if _, err := io.ReadAll(second); err == nil {
		t.Error("two answers take more than the limit")
	}
	for _, body := range []io.Closer{first, second, first} {
		_ = body.Close()
	}
	if _, err := io.ReadAll(third); err != nil {
		t.Errorf("after the others: %v", err)
	}
	if _ = third.Close(); limits.held.Load() != 0 {
		t.Errorf("%d bytes are held", limits.held.Load())
	}
}

// A watch takes as long as it likes, and none of its events is as large as it likes.
func TestEventsOfACluster(t *testing.T) {
	const sent = maxEventBytes + 4<<20
	for name, c := range map[string]struct {
		lineEnd string
		fits    bool
	}{
		"many events":             {"\n", true},
		"an event without an end": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := hostileCluster(t, func(w http.ResponseWriter, _ *http.Request) {
				for block, n := strings.Repeat("a", 1<<20)+c.lineEnd, 0; n < sent; n += len(block) {
					if _, err := io.WriteString(w, block); err != nil {
						return
					}
				}
			})
			httpClient, err := rest.HTTPClientFor(m.Config)
			if err != nil {
				t.Fatal(err)
			}
			response, err := httpClient.Get(m.Config.Host + "/api/v1/configmaps?watch=true")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if n, err := io.Copy(io.Discard, response.Body); (err == nil) != c.fits {
				t.Errorf("%d bytes were read, %v", n, err)
			}
		})
	}
}

// Of the objects that a cluster lists, the hub keeps no more than their identity.
func TestKeepLabels(t *testing.T) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "it", UID: types.UID("a"), ResourceVersion: "7", Labels: map[string]string{model.LabelManaged: "true", "app": "cart"},
		Annotations: map[string]string{"note": strings.Repeat("a", 1<<10)}, Finalizers: []string{"example.com/keep"},
	}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "it", UID: types.UID("a"), ResourceVersion: "7", Labels: map[string]string{model.LabelManaged: "true"},
	}}
	want.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	got, err := keepLabels(object)
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
