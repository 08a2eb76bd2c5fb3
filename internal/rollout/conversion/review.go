package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxReviewBytes is many times what the API server sends at once.
	maxReviewBytes = 64 << 20
	// maxErrors is how many failed objects of one review are named.
	maxErrors = 5
)

const reviewKind = "ConversionReview"

// Handler answers the API server's requests to convert.
func Handler(log logr.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "send a "+reviewKind+" by POST", http.StatusMethodNotAllowed)
			return
		}
		request, err := readReview(http.MaxBytesReader(w, r.Body, maxReviewBytes))
		if err != nil {
			code := http.StatusBadRequest
			if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
				code = http.StatusRequestEntityTooLarge
			}
			log.Error(err, "Refused a conversion review")
			http.Error(w, err.Error(), code)
			return
		}
		response := respond(request)
		if response.Result.Status != metav1.StatusSuccess {
			log.Error(errors.New(response.Result.Message), "Could not convert",
				"review", request.UID, "to", request.DesiredAPIVersion, "objects", len(request.Objects))
		}
		if err := writeReview(w, response); err != nil {
			log.Error(err, "Could not answer a conversion review", "review", request.UID)
		}
	})
}

func readReview(body io.Reader) (*apiextensionsv1.ConversionRequest, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(body).Decode(&review); err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	want := apiextensionsv1.SchemeGroupVersion.WithKind(reviewKind)
	switch got := review.GroupVersionKind(); {
	case got != want:
		return nil, fmt.Errorf("read the review: it is a %q of %q: send a %s of %s", review.Kind, review.APIVersion, want.Kind, want.GroupVersion())
	case review.Request == nil:
		return nil, errors.New("read the review: it has no request")
	case review.Request.UID == "":
		return nil, errors.New("read the review: request.uid is empty")
	}
	return review.Request, nil
}

// respond converts all objects or none: the API server accepts no partial result.
func respond(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{
		UID:              request.UID,
		ConvertedObjects: make([]runtime.RawExtension, 0, len(request.Objects)),
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
	var bad []error
	for i, object := range request.Objects {
		text, err := convertText(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			bad = append(bad, fmt.Errorf("object %d of %d: %w", i+1, len(request.Objects), err))
			continue
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: text})
	}
	if len(bad) > 0 {
		response.ConvertedObjects = []runtime.RawExtension{}
		response.Result = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Message: joinErrors(bad)}
	}
	return response
}

func convertText(text []byte, toAPIVersion string) ([]byte, error) {
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
	return json.Marshal(converted)
}

func joinErrors(bad []error) string {
	message := errors.Join(bad[:min(len(bad), maxErrors)]...).Error()
	if more := len(bad) - maxErrors; more > 0 {
		message += fmt.Sprintf("\nand %d more", more)
	}
	return message
}

func writeReview(w http.ResponseWriter, response *apiextensionsv1.ConversionResponse) error {
	review := apiextensionsv1.ConversionReview{Response: response}
	review.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(reviewKind))
	text, err := json.Marshal(review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return fmt.Errorf("write the review: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(text)
	return err
}
