package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestErrorClasses(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":                 {nil, ""},
		"not of an API server": {errors.New("connection refused"), ""},
		"conflict":             {apierrors.NewConflict(pods, "it", errors.New("changed")), ""},
		"not found":            {apierrors.NewNotFound(pods, "it"), ""},
		"too many requests":    {apierrors.NewTooManyRequests("wait", 1), ""},
		"invalid":              {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "it", nil), "rejected"},
		"bad request":          {apierrors.NewBadRequest("no such field"), "rejected"},
		"forbidden by admission": {
			apierrors.NewForbidden(pods, "it", errors.New("ValidatingAdmissionPolicy 'p' denied request: User missing")), "rejected",
		},
		"forbidden by RBAC": {
			apierrors.NewForbidden(pods, "it", errors.New(`User "hub" cannot get resource "pods" in API group ""`)), "rejected missing-permission",
		},
		"wrapped": {
			fmt.Errorf("write it: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "it", nil)), "rejected",
		},
		"too large for the API server": {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "too-large"},
		"too large for etcd":           {errors.New("etcdserver: request is too large"), "too-large"},
		"internal error":               {apierrors.NewInternalError(errors.New("webhook failed")), "unavailable"},
		"service unavailable":          {apierrors.NewServiceUnavailable("starting"), "unavailable"},
		"timeout":                      {apierrors.NewTimeoutError("slow", 1), "unavailable"},
		"server timeout":               {apierrors.NewServerTimeout(pods, "get", 1), "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, class := range []struct {
				name string
				is   func(error) bool
			}{{"rejected", IsRejected}, {"missing-permission", IsMissingPermission}, {"too-large", IsTooLarge}, {"unavailable", IsUnavailable}} {
				if class.is(c.err) {
					got = append(got, class.name)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
