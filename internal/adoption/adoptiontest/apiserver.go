package adoptiontest

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// kinds are those that an APIServer serves: "group/version plural Kind", with a * for those in no namespace.
var kinds = strings.Split(`v1 namespaces Namespace *
v1 secrets Secret
v1 configmaps ConfigMap
v1 services Service
v1 serviceaccounts ServiceAccount
apps/v1 deployments Deployment
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler
rbac.authorization.k8s.io/v1 roles Role
rbac.authorization.k8s.io/v1 rolebindings RoleBinding
rbac.authorization.k8s.io/v1 clusterroles ClusterRole *
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding *
cluster.karmada.io/v1alpha1 clusters Cluster *
policy.karmada.io/v1alpha1 propagationpolicies PropagationPolicy
policy.karmada.io/v1alpha1 clusterpropagationpolicies ClusterPropagationPolicy *
work.karmada.io/v1alpha1 works Work
work.karmada.io/v1alpha2 resourcebindings ResourceBinding
work.karmada.io/v1alpha2 clusterresourcebindings ClusterResourceBinding *`, "\n")

// TokensFrom is when the tokens of an APIServer begin: one expires as much later as was asked for.
var TokensFrom = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// APIServer keeps objects in memory and serves them over TLS as an API server does: resourceVersions, finalizers, selectors, pages
// and discovery. It has no admission, no defaults and no watches, and an apply is a merge.
type APIServer struct {
	*httptest.Server
	// Fail returns the error to answer a request with, nil to serve the request. An error that is no API status cuts the
	// connection. Fail may change what the server has first, as another client does meanwhile.
	Fail func(r *http.Request) error
	// Without has kinds that are not installed.
	Without map[string]bool
	// Index has the fields by which lists are selected, as in the cache of the operator.
	Index map[string]func(client.Object) []string

	scheme   *runtime.Scheme
	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured
	requests []string
	version  int
}

// NewAPIServer starts a server that has some objects.
func NewAPIServer(t testing.TB, objects ...client.Object) *APIServer {
	t.Helper()
	s := &APIServer{scheme: runtime.NewScheme(), objects: map[string]*unstructured.Unstructured{}}
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme)
	if err := builder.AddToScheme(s.scheme); err != nil {
		t.Fatal(err)
	}
	s.Put(t, objects...)
	s.Server = httptest.NewUnstartedServer(s)
	s.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Authority is the certificate by which clients trust the server.
func (s *APIServer) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Config is an administrator's.
func (s *APIServer) Config() *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.Authority()}}
}

// Client of an administrator.
func (s *APIServer) Client(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(s.Config(), client.Options{Scheme: s.scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Put stores objects as they are, over those of the same name.
func (s *APIServer) Put(t testing.TB, objects ...client.Object) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		if known, _, err := s.scheme.ObjectKinds(object); err == nil && u.GetKind() == "" {
			u.SetGroupVersionKind(known[0])
		}
		key := keyOf(u)
		if key == "" {
			t.Fatalf("%s is not served", u.GroupVersionKind())
		}
		s.store(key, u)
	}
}

// Remove removes an object, whatever finalizers it has.
func (s *APIServer) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// Object is what there is under a key, nil if there is nothing.
func (s *APIServer) Object(key string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key] == nil {
		return nil
	}
	return s.objects[key].DeepCopy()
}

// Keys are the objects that there are: "plural/name", or "plural/namespace/name".
func (s *APIServer) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Requests are those since the last call whose method is not GET, or those of all methods: "METHOD plural/namespace/name".
func (s *APIServer) Requests(all bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var requests []string
	for _, r := range s.requests {
		if all || !strings.HasPrefix(r, http.MethodGet) {
			requests = append(requests, r)
		}
	}
	s.requests = nil
	return requests
}

func keyOf(u *unstructured.Unstructured) string {
	for _, k := range kinds {
		if f := strings.Fields(k); f[0] == u.GetAPIVersion() && f[2] == u.GetKind() {
			return join(f[1], u.GetNamespace(), u.GetName())
		}
	}
	return ""
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "/")
}

func (s *APIServer) store(key string, u *unstructured.Unstructured) {
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
	if u.GetUID() == "" {
		u.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
	}
	if u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
	s.objects[key] = u
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		delete(s.objects, key)
	}
}

func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	var err error
	if s.Fail != nil {
		err = s.Fail(r)
	}
	if err == nil {
		answer, err = s.answer(r)
	} else {
		s.record(r, parse(r.URL.Path).key())
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			panic(http.ErrAbortHandler)
		}
		failure := status.Status()
		failure.APIVersion, failure.Kind = "v1", "Status"
		w.WriteHeader(int(failure.Code))
		answer = failure
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// UntilClosed waits until the client has given up a request, and fails the request then.
func UntilClosed(r *http.Request) error {
	// A server notices that a client is gone once it has read what the client sent.
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return r.Context().Err()
}

func (s *APIServer) record(r *http.Request, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+key)
}

// target is what a request is about.
type target struct{ groupVersion, resource, namespace, name, subresource string }

func (t target) key() string { return join(t.resource, t.namespace, t.name, t.subresource) }

func parse(path string) target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var t target
	switch {
	case parts[0] == "api" && len(parts) > 1:
		t.groupVersion, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		t.groupVersion, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return t
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&t.resource, &t.name, &t.subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return t
}

func (s *APIServer) answer(r *http.Request) (any, error) {
	t := parse(r.URL.Path)
	if t.resource == "" {
		return s.discover(r.URL.Path, t.groupVersion)
	}
	s.record(r, t.key())
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := ""
	for _, k := range kinds {
		if f := strings.Fields(k); f[0] == t.groupVersion && f[1] == t.resource && !s.Without[f[2]] {
			kind = f[2]
		}
	}
	gv, _ := schema.ParseGroupVersion(t.groupVersion)
	resource, key := schema.GroupResource{Group: gv.Group, Resource: t.resource}, join(t.resource, t.namespace, t.name)
	have := s.objects[key]
	switch {
	case kind == "":
		return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, resource, t.name, "", 0, true)
	case t.name == "" && r.Method == http.MethodGet:
		return s.list(r, t, gv.WithKind(kind))
	case t.name != "" && have == nil:
		return nil, apierrors.NewNotFound(resource, t.name)
	case r.Method == http.MethodGet:
		return asMetadata(r, have), nil
	case r.Method == http.MethodDelete:
		if len(have.GetFinalizers()) == 0 {
			delete(s.objects, key)
		} else if have.GetDeletionTimestamp() == nil {
			have = have.DeepCopy()
			have.SetDeletionTimestamp(&metav1.Time{Time: TokensFrom})
			s.store(key, have)
		}
		return have, nil
	}
	sent, err := s.body(r)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if version := sent.GetResourceVersion(); have != nil && version != "" && version != have.GetResourceVersion() {
		return nil, apierrors.NewConflict(resource, t.name, errors.New("the object has been modified"))
	}
	switch {
	case t.subresource == "token":
		seconds, _, _ := unstructured.NestedInt64(sent.Object, "spec", "expirationSeconds")
		s.version++
		return map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": map[string]any{
			"token": fmt.Sprintf("token-%d", s.version), "expirationTimestamp": TokensFrom.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339),
		}}, nil
	case r.Method == http.MethodPost:
		key = join(t.resource, t.namespace, sent.GetName())
		if s.objects[key] != nil {
			return nil, apierrors.NewAlreadyExists(resource, sent.GetName())
		}
	case r.Method == http.MethodPatch:
		sent = &unstructured.Unstructured{Object: merge(have.DeepCopy().Object, sent.Object)}
	default:
		sent.SetUID(have.GetUID())
		sent.SetGeneration(have.GetGeneration())
		sent.SetDeletionTimestamp(have.GetDeletionTimestamp())
	}
	sent.SetGroupVersionKind(gv.WithKind(kind))
	s.store(key, sent)
	return sent, nil
}

// body is the object, or the patch, that is sent.
func (s *APIServer) body(r *http.Request) (*unstructured.Unstructured, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if !strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		return u, k8sjson.Unmarshal(raw, &u.Object)
	}
	object, _, err := serializer.NewCodecFactory(s.scheme).UniversalDeserializer().Decode(raw, nil, nil)
	if err == nil {
		u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	}
	return u, err
}

func merge(into, patch map[string]any) map[string]any {
	for key, value := range patch {
		inner, nested := value.(map[string]any)
		switch have, ok := into[key].(map[string]any); {
		case value == nil:
			delete(into, key)
		case nested && ok:
			into[key] = merge(have, inner)
		case nested:
			into[key] = merge(map[string]any{}, inner)
		default:
			into[key] = value
		}
	}
	return into
}

func (s *APIServer) list(r *http.Request, t target, kind schema.GroupVersionKind) (any, error) {
	query := r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		u := s.objects[key]
		if u.GroupVersionKind() == kind && (t.namespace == "" || t.namespace == u.GetNamespace()) && byLabel.Matches(labels.Set(u.GetLabels())) && s.matches(u, byField) {
			items = append(items, asMetadata(r, u).Object)
		}
	}
	metadata := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	from, _ := strconv.Atoi(query.Get("continue"))
	items = items[min(from, len(items)):]
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && limit < len(items) {
		items, metadata["continue"] = items[:limit], strconv.Itoa(from+limit)
	}
	list := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List", "metadata": metadata, "items": items}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	return list, nil
}

func (s *APIServer) matches(u *unstructured.Unstructured, selector fields.Selector) bool {
	for _, r := range selector.Requirements() {
		object, err := s.scheme.New(u.GroupVersionKind())
		if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object) != nil {
			return false
		}
		if index := s.Index[r.Field]; index == nil || !slices.Contains(index(object.(client.Object)), r.Value) {
			return false
		}
	}
	return true
}

// asMetadata is an object as it was asked for: whole, or its metadata.
func asMetadata(r *http.Request, u *unstructured.Unstructured) *unstructured.Unstructured {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return u
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": u.Object["metadata"]}}
}

func (s *APIServer) discover(path, groupVersion string) (any, error) {
	if path == "/version" {
		return map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}, nil
	}
	groups, resources := []metav1.APIGroup{}, []metav1.APIResource{}
	for _, k := range kinds {
		f := strings.Fields(k)
		if s.Without[f[2]] {
			continue
		}
		if f[0] == groupVersion {
			resources = append(resources, metav1.APIResource{Name: f[1], SingularName: strings.ToLower(f[2]), Kind: f[2], Namespaced: len(f) == 3, Verbs: metav1.Verbs{"get", "list"}})
		}
		name, version, grouped := strings.Cut(f[0], "/")
		if !grouped {
			continue
		}
		i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == name })
		if i < 0 {
			i, groups = len(groups), append(groups, metav1.APIGroup{Name: name})
		}
		if v := (metav1.GroupVersionForDiscovery{GroupVersion: f[0], Version: version}); !slices.Contains(groups[i].Versions, v) {
			groups[i].Versions = append(groups[i].Versions, v)
			groups[i].PreferredVersion = groups[i].Versions[0]
		}
	}
	switch {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, nil
	case path == "/apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: groups}, nil
	case groupVersion != "":
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion, APIResources: resources}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
}
