package environmentd

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
)

// answering is an environmentd that always answers the same, without a network.
type answering struct {
	code int
	body []byte
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

// FuzzAnswer: whatever the program answers that an author of a Materialize has chosen, a status is one of those that there are, only
// a status of success is one, and no more is read than there is room for.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"status":"IsLeader"}`))
	f.Add(200, []byte(`{"status":"isleader","Status":"IsLeader"}`))
	f.Add(400, []byte(`{"result":{"Failure":{"message":"no"}}}`))
	f.Add(302, []byte(`{"status":"IsLeader"}`))
	f.Add(404, []byte(``))
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		e := clientOf(t, "http://127.0.0.1:1")
		e.http.Transport = answering{code, body}
		status, err := e.Status(t.Context(), second)
		var silent NoAnswer
		switch known := slices.Contains(answers, status); {
		case known && (err != nil || code != http.StatusOK):
			t.Errorf("status %s of %d, %v", status, code, err)
		case !known && (status != "" || !errors.As(err, &silent)):
			t.Errorf("status %q, %v", status, err)
		}
		var refused Refusal
		for _, err := range []error{e.Promote(t.Context(), second), e.SkipCatchup(t.Context(), second)} {
			if (err == nil) != (code/100 == 2) || err != nil && !errors.As(err, &silent) && !errors.As(err, &refused) {
				t.Errorf("%d is heard as %v", code, err)
			}
			if err != nil && len(err.Error()) > 3*maxResponseBytes+100 {
				t.Errorf("%d bytes are quoted", len(err.Error()))
			}
		}
	})
}
