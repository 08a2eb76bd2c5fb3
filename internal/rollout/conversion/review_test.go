package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func review(to string, objects ...string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u-1","desiredAPIVersion":%q,"objects":[%s]}}`,
		to, strings.Join(objects, ","))
}

// send posts a review, and gives the answer and what was logged.
func send(t *testing.T, method, body string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var logged bytes.Buffer
	log := funcr.New(func(_, line string) { fmt.Fprintln(&logged, line) }, funcr.Options{})
	w := httptest.NewRecorder()
	Handler(log, DefaultMemory).ServeHTTP(w, httptest.NewRequest(method, "/convert", strings.NewReader(body)))
	return w, logged.String()
}

func answered(t *testing.T, w *httptest.ResponseRecorder) *apiextensionsv1.ConversionResponse {
	t.Helper()
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("status %d, content type %q", w.Code, w.Header().Get("Content-Type"))
	}
	if review.Kind != "ConversionReview" || review.APIVersion != "apiextensions.k8s.io/v1" || review.Response == nil || review.Response.UID != "u-1" {
		t.Fatalf("answer %s", w.Body)
	}
	return review.Response
}

func TestReview(t *testing.T) {
	metadata := `{"name":"a","namespace":"shop","generation":9007199254740993,"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{".":{}}}}]}`
	w, logged := send(t, http.MethodPost, review(newer,
		`{"apiVersion":"`+older+`","kind":"Materialize","metadata":`+metadata+`,"spec":{"requestRollout":"`+one+`","big":9007199254740993}}`,
		`{"apiVersion":"`+newer+`","kind":"Materialize","metadata":{"name":"b"}}`,
		`{"apiVersion":"`+older+`","kind":"Materialize"}`,
	))
	response := answered(t, w)
	if response.Result.Status != metav1.StatusSuccess || logged != "" {
		t.Fatalf("result %v, logged %s", response.Result, logged)
	}
	want := []string{
		`{"apiVersion":"` + newer + `","kind":"Materialize","metadata":{"annotations":{"fairlead.dev/v1alpha1":"{\"version\":1,\"spec\":{\"requestRollout\":\"` + one + `\"}}"},` +
			`"generation":9007199254740993,"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{".":{}}}}],"name":"a","namespace":"shop"},"spec":{"big":9007199254740993}}`,
		`{"apiVersion":"` + newer + `","kind":"Materialize","metadata":{"name":"b"}}`,
		`{"apiVersion":"` + newer + `","kind":"Materialize","metadata":{}}`,
	}
	var got []string
	for _, object := range response.ConvertedObjects {
		got = append(got, string(object.Raw))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReviewHashesLikeConvert: metadata that is left as text has the same annotations.
func TestReviewHashesLikeConvert(t *testing.T) {
	o := object(t, older, "metadata: {name: mz, annotations: {materialize.cloud/force-rollout: again, a: b}}\n"+
		"spec: {environmentdImageRef: e:1, backendSecretName: b}\nstatus: {resourcesHash: x}")
	w, _ := send(t, http.MethodPost, review(newer, string(encode(t, o))))
	response := answered(t, w)
	if len(response.ConvertedObjects) != 1 {
		t.Fatal(w.Body)
	}
	if diff := cmp.Diff(convert(t, o, newer), decode(t, response.ConvertedObjects[0].Raw)); diff != "" {
		t.Error(diff)
	}
}

func TestReviewWithNothing(t *testing.T) {
	w, _ := send(t, http.MethodPost, review(newer))
	if response := answered(t, w); response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 0 {
		t.Error(w.Body)
	}
	if !strings.Contains(w.Body.String(), `"convertedObjects":[]`) {
		t.Error(w.Body)
	}
}

func TestBadObjects(t *testing.T) {
	good := `{"apiVersion":"` + older + `","kind":"Materialize","metadata":{"name":"good","namespace":"shop"}}`
	bad := `{"apiVersion":"` + older + `","kind":"Materialize","metadata":{"name":"bad","namespace":"shop"},"spec":"x"}`
	cases := map[string]struct {
		review string
		want   []string
	}{
		"one among others":  {review(newer, good, bad, good), []string{"object 2 of 3", "Materialize shop/bad", "spec is text"}},
		"another kind":      {review(newer, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`), []string{"Pod p"}},
		"no object":         {review(newer, `7`), []string{"object 1 of 1"}},
		"null":              {review(newer, `null`), []string{"object 1 of 1"}},
		"a version unknown": {review("materialize.cloud/v9", good), []string{"Materialize shop/good", "materialize.cloud/v9"}},
		"more than are told": {
			review(newer, strings.Split(strings.Repeat(bad+"\n", 7), "\n")[:7]...),
			[]string{"object 5 of 7", "and 2 more"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, logged := send(t, http.MethodPost, c.review)
			response := answered(t, w)
			if response.Result.Status != metav1.StatusFailure || len(response.ConvertedObjects) != 0 {
				t.Fatal(w.Body)
			}
			for _, part := range c.want {
				if !strings.Contains(response.Result.Message, part) {
					t.Errorf("%q does not say %q", response.Result.Message, part)
				}
				if !strings.Contains(logged, part) {
					t.Errorf("logged %q, which does not say %q", logged, part)
				}
			}
		})
	}
}

func TestMalformedReviews(t *testing.T) {
	good := review(newer)
	cases := map[string]struct {
		method, body string
		code         int
	}{
		"read":                         {http.MethodGet, "", http.StatusMethodNotAllowed},
		"put":                          {http.MethodPut, good, http.StatusMethodNotAllowed},
		"nothing":                      {http.MethodPost, "", http.StatusBadRequest},
		"no JSON":                      {http.MethodPost, "hello", http.StatusBadRequest},
		"cut off":                      {http.MethodPost, good[:len(good)-2], http.StatusBadRequest},
		"another kind":                 {http.MethodPost, strings.Replace(good, "ConversionReview", "AdmissionReview", 1), http.StatusBadRequest},
		"another version":              {http.MethodPost, strings.Replace(good, "k8s.io/v1", "k8s.io/v1beta1", 1), http.StatusBadRequest},
		"no request":                   {http.MethodPost, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, http.StatusBadRequest},
		"no uid":                       {http.MethodPost, strings.Replace(good, "u-1", "", 1), http.StatusBadRequest},
		"no desiredAPIVersion in time": {http.MethodPost, strings.Replace(good, `"objects"`, `"objects":[{]}],"x"`, 1), http.StatusBadRequest},
		"something after it":           {http.MethodPost, good + "{}", http.StatusBadRequest},
		"a field twice":                {http.MethodPost, strings.Replace(good, `"uid"`, `"uid":"u-2","uid"`, 1), http.StatusBadRequest},
		"objects of none":              {http.MethodPost, strings.Replace(good, "[]", "7", 1), http.StatusBadRequest},
		"too much":                     {http.MethodPost, strings.Repeat(" ", DefaultMemory/2), http.StatusRequestEntityTooLarge},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := send(t, c.method, c.body)
			if w.Code != c.code || w.Body.Len() == 0 {
				t.Errorf("status %d, want %d: %s", w.Code, c.code, w.Body)
			}
			if c.code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != http.MethodPost {
				t.Errorf("allows %q", w.Header().Get("Allow"))
			}
		})
	}
}

// TestOrderOfFields: JSON has none. Objects that come before the version to convert to are converted all the same.
func TestOrderOfFields(t *testing.T) {
	object := `{"apiVersion":"` + older + `","kind":"Materialize","metadata":{"name":"a<b"},"spec":{}}`
	w, logged := send(t, http.MethodPost, `{"later":[{"a":"]"}],"request":{"objects":[`+object+` , `+object+`],"more":null,"desiredAPIVersion":"`+newer+`","uid":"u-1"},`+
		`"kind":"ConversionReview", "apiVersion":"apiextensions.k8s.io/v1"}`+"\n")
	response := answered(t, w)
	if response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 2 || logged != "" {
		t.Fatalf("%s, logged %s", w.Body, logged)
	}
	want := strings.Replace(object, older, newer, 1)
	if got := string(response.ConvertedObjects[1].Raw); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLongErrors: what is said of an object that cannot be converted does not grow with the object.
func TestLongErrors(t *testing.T) {
	bad := `{"apiVersion":"` + older + `","kind":"Materialize","metadata":{"name":"` + strings.Repeat("ä", 1<<20) + `"},"spec":"x"}`
	w, logged := send(t, http.MethodPost, review(newer, bad, bad))
	if message := answered(t, w).Result.Message; len(message) > 10<<10 || len(logged) > 20<<10 {
		t.Errorf("the message has %d bytes, the log %d", len(message), len(logged))
	}
}

// TestCutOff is an API server that goes away in the middle of its review.
func TestCutOff(t *testing.T) {
	w := httptest.NewRecorder()
	body := io.MultiReader(strings.NewReader(review(newer)[:20]), failing{})
	Handler(logr.Discard(), DefaultMemory).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/convert", body))
	if w.Code != http.StatusBadRequest {
		t.Errorf("status %d", w.Code)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }
