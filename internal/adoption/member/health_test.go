package member

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestCheckServing(t *testing.T) {
	for name, c := range map[string]struct {
		code          int
		body, version string
		says          string
	}{
		"serves":            {http.StatusOK, `{"gitVersion":"v1.35.0"}`, "v1.35.0", ""},
		"refuses the token": {http.StatusUnauthorized, `{}`, "", "does not accept the token"},
		"is starting":       {http.StatusServiceUnavailable, ``, "", "503 Service Unavailable"},
		"is no API server":  {http.StatusOK, `<html>`, "", "read the version"},
		"forbids to ask":    {http.StatusForbidden, `{}`, "", "403 Forbidden"},
		"answers for ever":  {http.StatusOK, `{"gitVersion":"` + strings.Repeat("v", maxVersionSize) + `"}`, "", "read the version"},
		"says too much":     {http.StatusOK, `{"gitVersion":"` + strings.Repeat("v", maxVersionLength+1) + `"}`, "", "129 characters"},
		"says odd things":   {http.StatusOK, `{"gitVersion":"v1.35.0\u001b[2J"}`, `v1.35.0\x1b[2J`, ""},
		"redirects":         {http.StatusFound, ``, "", "302"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" || r.Header.Get("Authorization") != "Bearer secret" {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			version, err := checkServing(t.Context(), &rest.Config{Host: server.URL, BearerToken: "secret"})
			if version != c.version || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %v", version, err)
			}
			if errors.Is(err, errUnauthorized) != (c.code == http.StatusUnauthorized) {
				t.Errorf("%v", err)
			}
		})
	}
}
