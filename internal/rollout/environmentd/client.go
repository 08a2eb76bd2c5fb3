// Package environmentd is the client of environmentd's HTTP API: status of the leader, promote, skip catch-up.
package environmentd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// answers are the statuses that environmentd knows.
var answers = []v1alpha2.LeaderStatus{
	v1alpha2.LeaderInitializing, v1alpha2.LeaderReadyToPromote, v1alpha2.LeaderPromoting, v1alpha2.LeaderIsLeader,
}

// maxResponseBytes is more than any valid response has.
const maxResponseBytes = 64 << 10

// Client sends requests to environmentd over HTTP.
type Client struct {
	url  *template.Template
	http *http.Client
}

func NewClient(options Options) (*Client, error) {
	t, err := options.template()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// In the cluster there is no proxy, and a kept connection could outlive the pod behind it.
	transport.Proxy, transport.DisableKeepAlives = nil, true
	return &Client{
		url: t,
		http: &http.Client{
			Timeout: cmp.Or(options.Timeout, DefaultTimeout), Transport: transport,
			// Only a direct response of environmentd counts.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Status returns the leader status of the environmentd at an address.
func (e *Client) Status(ctx context.Context, at Address) (v1alpha2.LeaderStatus, error) {
	code, body, err := e.send(ctx, http.MethodGet, at, "/api/leader/status")
	if err != nil {
		return "", err
	}
	var answer struct {
		Status v1alpha2.LeaderStatus `json:"status"`
	}
	if code != http.StatusOK || json.Unmarshal(body, &answer) != nil || !slices.Contains(answers, answer.Status) {
		return "", invalidResponse("/api/leader/status", code)
	}
	return answer.Status, nil
}

// NoAnswer is why there is no valid response of environmentd.
type NoAnswer struct{ Message string }

func (n NoAnswer) Error() string { return n.Message }

// Refusal is environmentd's own rejection of a request.
type Refusal struct{ Message string }

func (r Refusal) Error() string {
	if r.Message == "" {
		return "environmentd refuses"
	}
	return "environmentd refuses: " + r.Message
}

// Promote asks the environmentd at an address to become the leader. It is idempotent.
func (e *Client) Promote(ctx context.Context, at Address) error {
	return e.post(ctx, at, "/api/leader/promote")
}

// SkipCatchup asks the environmentd at an address to skip the catch-up. Not every version supports it.
func (e *Client) SkipCatchup(ctx context.Context, at Address) error {
	return e.post(ctx, at, skipCatchup)
}

const skipCatchup = "/api/leader/skip-catchup"

func (e *Client) post(ctx context.Context, at Address, path string) error {
	code, body, err := e.send(ctx, http.MethodPost, at, path)
	if err != nil {
		return err
	}
	if path == skipCatchup && (code == http.StatusNotFound || code == http.StatusMethodNotAllowed) {
		return Refusal{"this version does not support " + path}
	}
	if code/100 == 2 {
		// The status shows the result; the body of the response does not matter.
		return nil
	}
	var answer struct {
		Result struct {
			Failure struct {
				Message string `json:"message"`
			}
		} `json:"result"`
	}
	if code == http.StatusBadRequest && json.Unmarshal(body, &answer) == nil {
		return Refusal{answer.Result.Failure.Message}
	}
	return invalidResponse(path, code)
}

func (e *Client) send(ctx context.Context, method string, at Address, path string) (int, []byte, error) {
	base, err := baseURL(e.url, at)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	response, err := e.http.Do(request)
	if err != nil {
		return 0, nil, connectionError(err, e.http.Timeout)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return 0, nil, connectionError(err, e.http.Timeout)
	}
	return response.StatusCode, body, nil
}

func invalidResponse(path string, code int) error {
	return NoAnswer{fmt.Sprintf("environmentd sends an invalid response to %s (HTTP %d)", path, code)}
}

// connectionError describes why there is no response, always in the same words, because they are written to the status. Go's
// own errors contain addresses and ports that differ with every attempt.
func connectionError(err error, timeout time.Duration) error {
	var network net.Error
	var dns *net.DNSError
	why := "connection failed"
	switch {
	case errors.As(err, &dns):
		why = dns.Name + " does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "connection reset"
	case errors.As(err, &network) && network.Timeout():
		why = fmt.Sprintf("no response within %s", timeout)
	case strings.Contains(err.Error(), "malformed HTTP"):
		why = "the response is not HTTP"
	}
	return NoAnswer{"environmentd does not answer: " + why}
}
