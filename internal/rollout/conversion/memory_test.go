package conversion

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

const mebi = 1 << 20

// largeObject is a Materialize of v1alpha1 with as many managed fields as make 5.9 KiB: 10,000 of them are 57 MiB.
func largeObject(t testing.TB) string {
	text := string(encode(t, object(t, older, strings.ReplaceAll(typical, "VERSION", older)+"status:"+upToDate+"  resourcesHash: x\n")))
	pad := 57*mebi/10_000 - len(text)
	return strings.Replace(text, `"f:podLabels":`, `"f:`+strings.Repeat("x", pad)+`":{},"f:podLabels":`, 1)
}

// listBody is a review of n objects that is made as it is read, so that only the handler holds any of it.
func listBody(object string, n int) (io.Reader, int64) {
	head, tail, _ := strings.Cut(review(newer, "OBJECTS"), "OBJECTS")
	objects := &repeated{text: object + ",", n: int64(n*(len(object)+1) - 1)}
	return io.MultiReader(strings.NewReader(head), objects, strings.NewReader(tail)), int64(len(head)+len(tail)) + objects.n
}

// repeated is the first n bytes of a text that is repeated.
type repeated struct {
	text  string
	at, n int64
}

func (r *repeated) Read(into []byte) (int, error) {
	if r.at == r.n {
		return 0, io.EOF
	}
	rest := r.text[r.at%int64(len(r.text)):]
	n := copy(into, rest[:min(int64(len(rest)), r.n-r.at)])
	r.at += int64(n)
	return n, nil
}

// maliciousBody is one object, with a map for every few bytes.
func maliciousBody(bytes int) (io.Reader, int64) {
	return listBody(`{"apiVersion":"`+older+`","kind":"Materialize","spec":{"a":[{"":0}`+strings.Repeat(`,{"":0}`, bytes/7)+`]}}`, 1)
}

// peakHeap is how much larger the heap gets while something runs, and its largest size when garbage was collected last.
func peakHeap(run func()) (peak, live int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	base, liveBase := samples[0].Value.Uint64(), samples[1].Value.Uint64()
	var most, mostLive uint64
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			metrics.Read(samples)
			most, mostLive = max(most, samples[0].Value.Uint64()), max(mostLive, samples[1].Value.Uint64())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	run()
	close(done)
	sampling.Wait()
	return int64(max(most, base) - base), int64(max(mostLive, liveBase) - liveBase)
}

// post sends a body of a size, or of no known size, and gives the status of the answer and its beginning.
func post(t testing.TB, url string, body io.Reader, bytes int64) (int, string) {
	request, err := http.NewRequest(http.MethodPost, url+"/convert", io.NopCloser(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.ContentLength = bytes
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		// The server may close the connection before all is sent.
		return 0, err.Error()
	}
	defer response.Body.Close()
	head, err := io.ReadAll(io.LimitReader(response.Body, 2<<10))
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
	}
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(head)
}

// beginning is the status of an answer, and its first bytes.
type beginning struct {
	header http.Header
	code   int
	head   []byte
}

func (b *beginning) Header() http.Header  { return b.header }
func (b *beginning) WriteHeader(code int) { b.code = code }

func (b *beginning) Write(text []byte) (int, error) {
	b.head = append(b.head, text[:min(len(text), 2<<10-len(b.head))]...)
	return len(text), nil
}

// handle has a body of a size, or of no known size, handled without a connection: one that is closed before all is sent may take
// the answer along.
func handle(handler http.Handler, body io.Reader, bytes int64) (int, string) {
	request := httptest.NewRequest(http.MethodPost, "/convert", body)
	request.ContentLength = bytes
	answer := &beginning{header: http.Header{}, code: http.StatusOK}
	handler.ServeHTTP(answer, request)
	return answer.code, string(answer.head)
}

func serve(t testing.TB, memory int64) string {
	server := httptest.NewServer(Handler(logr.Discard(), memory))
	t.Cleanup(server.Close)
	return server.URL
}

// TestMemoryOfAReview: a stranger sends a review of up to 57 MiB.
func TestMemoryOfAReview(t *testing.T) {
	cases := map[string]struct {
		body  func() (io.Reader, int64)
		known bool
		want  int
	}{
		"a list":                     {func() (io.Reader, int64) { return listBody(largeObject(t), 10_000) }, true, http.StatusOK},
		"a list of unknown size":     {func() (io.Reader, int64) { return listBody(largeObject(t), 2000) }, false, http.StatusOK},
		"an object made to be large": {func() (io.Reader, int64) { return maliciousBody(57 * mebi) }, true, http.StatusRequestEntityTooLarge},
		"a list made to be large": {func() (io.Reader, int64) {
			return listBody(`{"apiVersion":"`+older+`","kind":"Materialize","spec":{"a":[{"":0}`+strings.Repeat(`,{"":0}`, 140_000)+`]}}`, 5)
		}, true, http.StatusOK},
		"blanks": {func() (io.Reader, int64) { return strings.NewReader(strings.Repeat(" ", 57*mebi)), 57 * mebi }, true, http.StatusBadRequest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			handler := Handler(logr.Discard(), DefaultMemory)
			body, bytes := c.body()
			sent := bytes
			if !c.known {
				sent = -1
			}
			var code int
			var answer string
			peak, live := peakHeap(func() { code, answer = handle(handler, body, sent) })
			t.Logf("%d MiB: status %d, heap +%d MiB, of which +%d MiB live", bytes/mebi, code, peak/mebi, live/mebi)
			if code != c.want {
				t.Errorf("status %d, want %d: %.300s", code, c.want, answer)
			}
			// Garbage counts until it is collected.
			if live > DefaultMemory || peak > 2*DefaultMemory {
				t.Errorf("the heap grew by %d MiB, %d MiB of it live", peak/mebi, live/mebi)
			}
		})
	}
}

// flood has strangers send large reviews at once, while the API server sends small ones until the strangers are done. It
// returns how the strangers were answered, how many small reviews were converted and how long the slowest took.
func flood(t testing.TB, url string, strangers, objects int) (codes map[int]int, small int, slowest time.Duration) {
	large := largeObject(t)
	codes = map[int]int{}
	var lock sync.Mutex
	var flooding, reading sync.WaitGroup
	for range strangers {
		flooding.Go(func() {
			body, bytes := listBody(large, objects)
			code, answer := post(t, url, body, bytes)
			if code == http.StatusTooManyRequests && !strings.Contains(answer, "--webhook-memory") {
				t.Errorf("the answer does not say how to raise the limit: %s", answer)
			}
			lock.Lock()
			defer lock.Unlock()
			codes[code]++
		})
	}
	var over atomic.Bool
	reading.Go(func() {
		for ; !over.Load() || small == 0; small++ {
			start := time.Now()
			body, bytes := listBody(large, 1)
			if code, answer := post(t, url, body, bytes); code != http.StatusOK {
				t.Errorf("a review of the API server was refused with %d: %s", code, answer)
			}
			slowest = max(slowest, time.Since(start))
		}
	})
	flooding.Wait()
	over.Store(true)
	reading.Wait()
	return codes, small, slowest
}

// TestManyReviews: strangers send more at once than there is memory for. BenchmarkManyReviews is the same at full size.
func TestManyReviews(t *testing.T) {
	url := serve(t, MinMemory)
	var codes map[int]int
	var small int
	peak, live := peakHeap(func() { codes, small, _ = flood(t, url, 20, 500) })
	t.Logf("20 reviews of 500 objects: %v; %d small ones converted; heap +%d MiB, of which +%d MiB live", codes, small, peak/mebi, live/mebi)
	if codes[http.StatusOK] == 0 || codes[http.StatusOK]+codes[http.StatusTooManyRequests]+codes[0] != 20 {
		t.Errorf("answers %v", codes)
	}
	if live > 2*MinMemory || peak > 4*MinMemory {
		t.Errorf("the heap grew by %d MiB, %d MiB of it live", peak/mebi, live/mebi)
	}
}

// TestUnknownSize: a review that does not tell its size is cut off when it has used its share.
func TestUnknownSize(t *testing.T) {
	body, _ := listBody(largeObject(t), 10_000)
	counted := &counter{from: body}
	code, answer := handle(Handler(logr.Discard(), MinMemory), counted, -1)
	if code != http.StatusRequestEntityTooLarge || !strings.Contains(answer, "--webhook-memory") {
		t.Errorf("status %d: %s", code, answer)
	}
	if counted.n > MinMemory {
		t.Errorf("%d MiB were read", counted.n/mebi)
	}
}

type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.n += int64(n)
	return n, err
}

func TestBudget(t *testing.T) {
	const memory = 128 * mebi
	reserve := func(t *testing.T, b *budget, bytes int64) (*reservation, error) {
		t.Helper()
		return b.reserve(t.Context(), bytes)
	}
	held := func(t *testing.T, b *budget, bytes int64) *reservation {
		t.Helper()
		r, err := reserve(t, b, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	cases := map[string]func(*testing.T, *budget){
		"a review larger than what one may take": func(t *testing.T, b *budget) {
			_, err := reserve(t, b, 64*mebi)
			if statusOf(err) != http.StatusRequestEntityTooLarge || !strings.Contains(err.Error(), "--webhook-memory") {
				t.Error(err)
			}
		},
		"a review that waits too long": func(t *testing.T, b *budget) {
			held(t, b, 57*mebi)
			start := time.Now()
			_, err := reserve(t, b, 57*mebi)
			if statusOf(err) != http.StatusTooManyRequests || !strings.Contains(err.Error(), "--webhook-memory") || time.Since(start) != queueTimeout {
				t.Error(err, time.Since(start))
			}
		},
		"a review whose turn comes": func(t *testing.T, b *budget) {
			before := held(t, b, 57*mebi)
			time.AfterFunc(time.Second, before.release)
			if _, err := reserve(t, b, 57*mebi); err != nil {
				t.Error(err)
			}
		},
		"a review of unknown size beside a large one": func(t *testing.T, b *budget) {
			held(t, b, 57*mebi)
			start := time.Now()
			if _, err := reserve(t, b, -1); err != nil {
				t.Error(err)
			}
			if time.Since(start) != 0 {
				t.Error("it has waited")
			}
		},
		"small reviews while large ones wait": func(t *testing.T, b *budget) {
			held(t, b, 57*mebi)
			for range 3 {
				go func() { _, _ = b.reserve(t.Context(), 57*mebi) }()
			}
			synctest.Wait()
			start := time.Now()
			for range 16 {
				held(t, b, mebi)
			}
			if time.Since(start) != 0 {
				t.Error("they have waited")
			}
			time.Sleep(time.Minute)
		},
		"small reviews beyond their share": func(t *testing.T, b *budget) {
			for range 16 + 32 {
				held(t, b, mebi)
			}
			if _, err := reserve(t, b, mebi); statusOf(err) != http.StatusTooManyRequests {
				t.Error(err)
			}
		},
		"a review that grows": func(t *testing.T, b *budget) {
			r := held(t, b, 10*mebi)
			if err := errors.Join(r.grow(5*mebi), r.grow(20*mebi), r.grow(64*mebi)); err != nil {
				t.Error(err)
			}
			if err := r.grow(65 * mebi); statusOf(err) != http.StatusRequestEntityTooLarge {
				t.Error(err)
			}
			r.release()
			held(t, b, 50*mebi)
			if err := held(t, b, 2*mebi).grow(20 * mebi); statusOf(err) != http.StatusTooManyRequests {
				t.Error(err)
			}
		},
		"an object that needs more than there is for all": func(t *testing.T, b *budget) {
			done, err := b.parsing(t.Context(), maxObjectBytes)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Second, done)
			start := time.Now()
			if again, err := b.parsing(t.Context(), 1); err != nil || time.Since(start) != time.Second {
				t.Error(err, time.Since(start))
			} else {
				again()
			}
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { run(t, newBudget(memory)) }) })
	}
}

// BenchmarkManyReviews has twenty strangers send 10,000 objects each, 57 MiB, to an operator with a limit of 512 MiB, while
// the API server sends small reviews. These are all converted, and the heap stays within half of the limit.
func BenchmarkManyReviews(b *testing.B) {
	for b.Loop() {
		url := serve(b, DefaultMemory)
		var codes map[int]int
		var small int
		var slowest time.Duration
		peak, live := peakHeap(func() { codes, small, slowest = flood(b, url, 20, 10_000) })
		b.ReportMetric(float64(peak)/mebi, "peak-heap-MiB")
		b.ReportMetric(float64(live)/mebi, "live-heap-MiB")
		b.ReportMetric(float64(codes[http.StatusOK]), "converted-of-20")
		b.ReportMetric(float64(small), "small-converted")
		b.ReportMetric(float64(slowest.Milliseconds()), "slowest-small-ms")
		if codes[http.StatusOK] == 0 || peak > 2*DefaultMemory {
			b.Errorf("answers %v, heap +%d MiB", codes, peak/mebi)
		}
	}
}
