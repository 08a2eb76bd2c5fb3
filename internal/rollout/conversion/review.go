package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	reviewKind = "ConversionReview"
	// maxErrors is how many failed objects of one review are named.
	maxErrors = 5
	// maxErrorBytes is how much is said of each.
	maxErrorBytes = 1 << 10
)

var reviewVersion = apiextensionsv1.SchemeGroupVersion.String()

// conversionReview is converted as it is read: only the answer is kept.
type conversionReview struct {
	budget   *budget
	reserved *reservation
	in       valueReader
	// readBytes of the body.
	readBytes int64

	kind, apiVersion string
	requested        bool
	uid, desired     string
	// desiredKnown is false until the version to convert to was read. Objects that come before it wait as text.
	desiredKnown bool
	waiting      [][]byte
	waitingBytes int64

	count, failed int
	// errs are the first of those that failed.
	errs    []objectError
	answer  answer
	encoder *json.Encoder
}

type objectError struct {
	number int
	text   string
}

func newReview(body io.Reader, budget *budget, reserved *reservation) *conversionReview {
	r := &conversionReview{budget: budget, reserved: reserved}
	r.in = valueReader{from: &countingReader{body, r}, maxValue: maxObjectBytes}
	r.encoder = json.NewEncoder(&r.answer)
	// Escapes would make the answer larger than the request.
	r.encoder.SetEscapeHTML(false)
	return r
}

// countingReader reserves memory for a body as it is read, as far as the body has not told its size.
type countingReader struct {
	body   io.Reader
	review *conversionReview
}

func (c *countingReader) Read(into []byte) (int, error) {
	n, err := c.body.Read(into)
	c.review.readBytes += int64(n)
	if grown := c.review.grow(); grown != nil {
		return n, grown
	}
	return n, err
}

// grow makes sure that what the review holds is reserved.
func (r *conversionReview) grow() error {
	return r.reserved.grow(max(r.readBytes, r.answer.size+r.waitingBytes) + min(r.readBytes, maxObjectBytes))
}

// read reads the review and converts its objects.
func (r *conversionReview) read(ctx context.Context) error {
	err := r.in.object(func(name string) error {
		switch name {
		case "kind":
			return r.in.into(&r.kind)
		case "apiVersion":
			return r.in.into(&r.apiVersion)
		case "request":
			return r.readRequest(ctx)
		}
		return r.in.skip()
	})
	if err == nil {
		err = r.in.end()
	}
	switch {
	case err != nil:
		return err
	case r.kind != reviewKind || r.apiVersion != reviewVersion:
		return fmt.Errorf("it is a %.100q of %.100q: send a %s of %s", r.kind, r.apiVersion, reviewKind, reviewVersion)
	case !r.requested:
		return errors.New("it has no request")
	case r.uid == "":
		return errors.New("request.uid is empty")
	}
	return nil
}

func (r *conversionReview) readRequest(ctx context.Context) error {
	if next, err := r.in.peek(); err == nil && next == 'n' {
		return r.in.into(&struct{}{})
	}
	r.requested = true
	fmt.Fprintf(&r.answer, `{"kind":%q,"apiVersion":%q,"response":{"convertedObjects":[`, reviewKind, reviewVersion)
	err := r.in.object(func(name string) error {
		switch name {
		case "uid":
			return r.in.into(&r.uid)
		case "desiredAPIVersion":
			r.desiredKnown = true
			return r.in.into(&r.desired)
		case "objects":
			return r.in.list(func() error { return r.readObject(ctx) })
		}
		return r.in.skip()
	})
	if err != nil {
		return err
	}
	for _, text := range r.waiting {
		if err := r.convert(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (r *conversionReview) readObject(ctx context.Context) error {
	text, err := r.in.read()
	if tooLarge := (*valueTooLargeError)(nil); errors.As(err, &tooLarge) {
		return fmt.Errorf("object %d: %w, which is more than the API server accepts", r.count+len(r.waiting)+1, err)
	}
	if err != nil {
		return err
	}
	if r.desiredKnown {
		return r.convert(ctx, text)
	}
	if !json.Valid(text) {
		return errors.New("invalid JSON")
	}
	r.waiting = append(r.waiting, slices.Clone(text))
	// The slice itself counts as well.
	r.waitingBytes += int64(len(text)) + 64
	return r.grow()
}

// convert adds an object to the answer. The API server accepts no partial result, so that after a failure the other objects are
// only checked.
func (r *conversionReview) convert(ctx context.Context, text []byte) error {
	parsed, err := r.budget.parsing(ctx, len(text))
	if err != nil {
		return err
	}
	defer parsed()
	converted, err := convertText(text, r.desired)
	if invalid := (*json.SyntaxError)(nil); errors.As(err, &invalid) {
		return err
	}
	r.count++
	switch {
	case err != nil:
		if r.failed++; r.failed <= maxErrors {
			r.errs = append(r.errs, objectError{r.count, truncate(err.Error(), maxErrorBytes)})
		}
		r.answer = answer{}
		return nil
	case r.failed > 0:
		return nil
	case r.count > 1:
		_, _ = r.answer.Write([]byte{','})
	}
	if err := r.encoder.Encode(converted); err != nil {
		return err
	}
	return r.grow()
}

// convertText returns an object, given as text, in another version.
func convertText(text []byte, toAPIVersion string) (map[string]any, error) {
	object, err := parse(text)
	if err != nil {
		return nil, err
	}
	converted, err := Convert(object, toAPIVersion)
	if err != nil {
		return nil, err
	}
	// The API server restores its own metadata in any case, and rejects a response without any.
	if converted["metadata"] == nil {
		converted["metadata"] = struct{}{}
	}
	return converted, nil
}

// message says which objects could not be converted.
func (r *conversionReview) message() string {
	var lines []string
	for _, e := range r.errs {
		lines = append(lines, fmt.Sprintf("object %d of %d: %s", e.number, r.count, e.text))
	}
	if more := r.failed - len(r.errs); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// write writes the answer: all objects, or why some could not be converted.
func (r *conversionReview) write(w http.ResponseWriter) error {
	if r.failed > 0 {
		review := apiextensionsv1.ConversionReview{Response: &apiextensionsv1.ConversionResponse{
			UID: types.UID(r.uid), ConvertedObjects: []runtime.RawExtension{},
			Result: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Message: r.message()},
		}}
		review.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(reviewKind))
		if err := json.NewEncoder(&r.answer).Encode(review); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(&r.answer, `],"uid":%s,"result":{"metadata":{},"status":%q}}}`, toJSON(r.uid), metav1.StatusSuccess)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.FormatInt(r.answer.size, 10))
	_, err := r.answer.WriteTo(w)
	return err
}

func truncate(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + "..."
}
