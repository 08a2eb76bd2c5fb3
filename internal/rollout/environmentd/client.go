package environmentd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func isAnswer(s v1alpha2.LeaderStatus) bool {
	switch s {
	case v1alpha2.LeaderInitializing, v1alpha2.LeaderReadyToPromote, v1alpha2.LeaderPromoting, v1alpha2.LeaderIsLeader:
		return true
	}
	return false
}

// longestAnswer is more than any answer that makes sense.
const maxResponseBytes = 64 << 10

// environmentds asks environmentd, over HTTP, what it is about and to take over.
type Client struct {
	url  *template.Template
	http *http.Client
}

func NewClient(options Options) (*Client, error) {
	t, err := options.template()
	if err != nil {
		return nil, err
	}
	timeout := options.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// Inside the cluster there is nothing in between, and a connection that is kept could outlive the pod behind it.
	transport.Proxy, transport.DisableKeepAlives = nil, true
	return &Client{
		url: t,
		http: &http.Client{
			Timeout: timeout, Transport: transport,
			// An answer counts only if it is environmentd's own.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Status asks how far the environmentd at an address is.
func (e *Client) Status(ctx context.Context, at Address) (v1alpha2.LeaderStatus, error) {
	code, body, err := e.send(ctx, http.MethodGet, at, "/api/leader/status")
	if err != nil {
		return "", err
	}
	var answer struct {
		Status v1alpha2.LeaderStatus `json:"status"`
	}
	if code != http.StatusOK || json.Unmarshal(body, &answer) != nil || !isAnswer(answer.Status) {
		return "", invalidResponse("/api/leader/status", code)
	}
	return answer.Status, nil
}

// noAnswer is why environmentd has not answered, or not so that it could be understood.
type NoAnswer struct{ Message string }

func (n NoAnswer) Error() string { return n.Message }

// refusal is environmentd's own no.
type Refusal struct{ Message string }

func (r Refusal) Error() string {
	if r.Message == "" {
		return "environmentd refuses"
	}
	return "environmentd refuses: " + r.Message
}

// Promote asks the environmentd at an address to take over. It may be asked again and again.
func (e *Client) Promote(ctx context.Context, at Address) error {
	return e.post(ctx, at, "/api/leader/promote")
}

// SkipCatchup asks the environmentd at an address not to wait until it has caught up. Not every version can.
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
		// What it came to is seen in its status. It may say so in words of its own.
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

// silent puts into words why there is no answer: the same ones each time, for they end up in a status. What Go says has
// addresses and ports in it that are others with every attempt.
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
