package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is one call as the API server's authorizer would describe it.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or
	// deletecollection, or the HTTP method where Resource is empty.
	Verb        string
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	// Name is known for creates too, where the URL does not tell it.
	Name   string
	DryRun bool
	Path   string
}

// Writes tells whether the request can change what the server stores.
func (r Request) Writes() bool {
	if r.Resource.Resource == "" || r.DryRun {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Kind names the resource as RBAC does: secrets, deployments.apps/status.
func (r Request) Kind() string {
	kind := r.Resource.GroupResource().String()
	if r.Subresource != "" {
		kind += "/" + r.Subresource
	}
	return kind
}

func (r Request) String() string {
	if r.Resource.Resource == "" {
		return r.Verb + " " + r.Path
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Verb, r.Kind(), r.key()))
}

func (r Request) key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

var requestInfo = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func describe(req *http.Request) Request {
	// The factory's only error is about namespace selectors it cannot read; what
	// it did understand is good enough to match on.
	info, _ := requestInfo.NewRequestInfo(req)
	r := Request{Verb: info.Verb, Path: info.Path, DryRun: req.URL.Query().Has("dryRun")}
	if !info.IsResourceRequest {
		return r
	}
	r.Resource = schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	r.Subresource, r.Namespace, r.Name = info.Subresource, info.Namespace, info.Name
	if info.Resource == "namespaces" {
		r.Namespace = "" // the authorizer puts a namespace inside itself
	}
	if r.Verb == "create" && r.Name == "" {
		r.Name = nameInBody(req)
	}
	return r
}

// nameInBody finds the name of an object that is being created. Native types
// travel as protobuf, all others as JSON.
func nameInBody(req *http.Request) string {
	if req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	if bytes.HasPrefix(raw, []byte("k8s\x00")) {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			return ""
		}
		o, err := meta.Accessor(obj)
		if err != nil {
			return ""
		}
		return nameOrPrefix(o.GetName(), o.GetGenerateName())
	}
	var obj struct {
		Metadata struct{ Name, GenerateName string }
	}
	if err := json.Unmarshal(raw, &obj); err != nil {
		return ""
	}
	return nameOrPrefix(obj.Metadata.Name, obj.Metadata.GenerateName)
}

func nameOrPrefix(name, prefix string) string {
	if name == "" && prefix != "" {
		return prefix + "*"
	}
	return name
}
