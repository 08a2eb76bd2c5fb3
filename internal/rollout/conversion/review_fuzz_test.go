package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzReview takes any body for a review, and expects the same of the reader that takes it object by object as of one that
// parses it as a whole.
func FuzzReview(f *testing.F) {
	good := `{"apiVersion":"` + older + `","kind":"Materialize","metadata":{"name":"mz","labels":{"a":"}]\"\\"}},"spec":{"x":[1,{},[]]}}`
	for _, seed := range []string{
		review(newer), review(newer, good), review(newer, good, good), review(older, good), review("v9", good), review(newer, "7", "null", `"a"`, "[]", "{}"),
		review(newer, good, `{"spec":`), review(newer, `{]`), review(newer, "") + " ", review(newer, good, ""), review(newer, `nul`), review(newer, `"\`),
		`{"request":{"objects":[` + good + `],"desiredAPIVersion":"` + newer + `","uid":"u-1"},"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`,
		`{"request":{"objects":[` + good + `],"uid":"u-1"},"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`,
		strings.Replace(review(newer, good), `"uid"`, `"\u0075id"`, 1), strings.Replace(review(newer, good), `"uid"`, `"other":{"a":[{"b":"c"}]},"uid"`, 1),
		strings.Replace(review(newer), "[]", "null", 1), strings.Replace(review(newer), "[]", "[,]", 1), strings.Replace(review(newer), "[]", "[", 1),
		strings.ReplaceAll(review(newer, good), ":", " :\n\t"), review(newer, good) + "x", review(newer, good) + "\n", `{"request":null}`, `{"request":7}`,
		``, ` `, `{`, `{}`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{null:1}`, `{"kind":7}`, `[]`, `7`, `"`, `}`, "\xff", "{\"\xff\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Count(body, []byte{'{'})+bytes.Count(body, []byte{'['}) > 9000 {
			t.Skip("how deep a document may be is another matter")
		}
		got, err := answerOf(t, bytes.NewReader(body))
		if slowly, slowErr := answerOf(t, iotest.OneByteReader(bytes.NewReader(body))); (err == nil) != (slowErr == nil) || !cmp.Equal(got, slowly) {
			t.Errorf("at once: %v, %v; byte by byte: %v, %v", got, err, slowly, slowErr)
		}
		want, valid := wholeAnswer(t, body)
		if err != nil {
			if twice := (*duplicateError)(nil); valid && !errors.As(err, &twice) && !strings.Contains(err.Error(), "fields") {
				t.Errorf("%q is valid, and refused: %v", body, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is invalid, and accepted", body)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// answerOf is what a review is answered with: the converted objects, nil if some could not be, and the uid.
func answerOf(t *testing.T, body io.Reader) ([]any, error) {
	budget := newBudget(MinMemory)
	reserved, err := budget.reserve(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.release()
	r := newReview(body, budget, reserved)
	if err := r.read(t.Context()); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if err := r.write(w); err != nil {
		t.Fatal(err)
	}
	var answer apiextensionsv1.ConversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("%v in the answer %s", err, w.Body)
	}
	if answer.Response.Result.Status != metav1.StatusSuccess {
		return []any{string(answer.Response.UID), nil}, nil
	}
	converted := []any{string(answer.Response.UID)}
	for _, object := range answer.Response.ConvertedObjects {
		converted = append(converted, decode(t, object.Raw))
	}
	return converted, nil
}

// wholeAnswer is the answer to a review that is parsed at once, and whether it is a valid review.
func wholeAnswer(t *testing.T, body []byte) ([]any, bool) {
	var review, request map[string]json.RawMessage
	var kind, apiVersion, uid, desired string
	var objects []json.RawMessage
	for _, part := range []struct {
		of   func() json.RawMessage
		into any
	}{
		{func() json.RawMessage { return body }, &review},
		{func() json.RawMessage { return review["kind"] }, &kind},
		{func() json.RawMessage { return review["apiVersion"] }, &apiVersion},
		{func() json.RawMessage { return review["request"] }, &request},
		{func() json.RawMessage { return request["uid"] }, &uid},
		{func() json.RawMessage { return request["desiredAPIVersion"] }, &desired},
		{func() json.RawMessage { return request["objects"] }, &objects},
	} {
		if text := part.of(); text != nil && json.Unmarshal(text, part.into) != nil {
			return nil, false
		}
	}
	if review == nil || kind != reviewKind || apiVersion != reviewVersion || request == nil || uid == "" {
		return nil, false
	}
	converted := []any{uid}
	for _, text := range objects {
		object, err := convertText(text, desired)
		if err != nil {
			return []any{uid, nil}, true
		}
		converted = append(converted, decode(t, encode(t, object)))
	}
	return converted, true
}
