package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRemoteVersions(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		for _, version := range []string{"v1.24.9", "v1.26.0-rc.1", "v1.24.10", "v1.26.0", "v1.9.0", "v1.26.0-alpha.2"} {
			s.publish("istiod", version, small(t, "istiod", version, ""))
		}
		s.publish("base", "v1.30.0", small(t, "base", "v1.30.0", "not a version without istiod"))

		versions, err := s.open(t).Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"v1.26.0", "v1.26.0-rc.1", "v1.26.0-alpha.2", "v1.24.10", "v1.24.9", "v1.9.0"}
		if diff := cmp.Diff(want, versions); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRemoteLoads(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		archives := map[string][]byte{}
		for _, version := range []string{"v1.24.0", "v1.26.0"} {
			for _, name := range []string{"istiod", "base"} {
				archives[name+version] = full(t, name, version)
				s.publish(name, version, archives[name+version])
			}
		}
		source := s.open(t)
		if asked := s.count(func() { _ = s.open(t) }); asked != 0 {
			t.Errorf("opening it made %d requests", asked)
		}
		for _, version := range []string{"v1.24.0", "v1.26.0"} {
			for _, name := range []string{"istiod", "base"} {
				c := load(t, source, name, version)
				if got, want := c.Digest, digestOf(archives[name+version]); got != want {
					t.Errorf("%s %s: digest %s, want %s", name, version, got, want)
				}
				if c.Name() != name || "v"+c.Metadata.Version != version || len(c.Templates) == 0 || len(c.Values) == 0 {
					t.Errorf("%s %s: loaded %s %s with %d templates", name, version, c.Name(), c.Metadata.Version, len(c.Templates))
				}
			}
		}
	})
}

// What is loaded once is there while nobody answers: in the process that loaded it, and in the next.
func TestRemoteOutlivesItsServer(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		archive := small(t, "istiod", "v1.24.0", "")
		s.publish("istiod", "v1.24.0", archive)
		source := s.open(t)
		clock := time.Now()
		source.now = func() time.Time { return clock }
		load(t, source, "istiod", "v1.24.0")
		if _, err := source.Versions(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()

		load(t, source, "istiod", "v1.24.0")
		if c := load(t, s.open(t), "istiod", "v1.24.0"); c.Digest != digestOf(archive) {
			t.Errorf("got %s", c.Digest)
		}
		clock = clock.Add(source.Refresh() - time.Second)
		versions, err := source.Versions(t.Context())
		if diff := cmp.Diff([]string{"v1.24.0"}, versions); err != nil || diff != "" {
			t.Error(err, diff)
		}
		clock = clock.Add(time.Second)
		_, err = source.Versions(t.Context())
		wantError(t, err, "ask "+s.options.kind()+" "+s.options.Repository+" for the versions of Istio: ",
			"connection refused", "check --chart-repository, or use a directory of charts with --chart-dir")
		_, again := source.Versions(t.Context())
		if err.Error() != again.Error() {
			t.Errorf("told twice, it reads\n%v\n%v", err, again)
		}
		_, err = source.Load(t.Context(), "base", "v1.24.0")
		wantError(t, err, "load chart base v1.24.0 from "+s.options.kind()+" "+s.options.Repository, "connection refused",
			"check --chart-repository")
	})
}

func (o Options) kind() string {
	if strings.HasPrefix(o.Repository, "oci:") {
		return "registry"
	}
	return "repository"
}

func TestRemoteAsksForVersionsOnlyWhenItIsTime(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		s.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", ""))
		source := s.open(t)
		clock := time.Now()
		source.now = func() time.Time { return clock }
		ask := func() {
			if _, err := source.Versions(t.Context()); err != nil {
				t.Error(err)
			}
		}
		once := s.count(ask)
		if again := s.count(ask); again != 0 {
			t.Errorf("asked again at once: %d requests", again)
		}
		s.publish("istiod", "v1.24.1", small(t, "istiod", "v1.24.1", ""))
		clock = clock.Add(source.Refresh())
		if later := s.count(ask); later != once {
			t.Errorf("asked later: %d requests, want %d", later, once)
		}
		versions, _ := source.Versions(t.Context())
		if diff := cmp.Diff([]string{"v1.24.1", "v1.24.0"}, versions); diff != "" {
			t.Error(diff)
		}
		versions[0] = "changed by the caller"
		if versions, _ := source.Versions(t.Context()); versions[0] != "v1.24.1" {
			t.Error("callers share one list")
		}
	})
}

func TestRemoteHasNoSuchChart(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		s.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", ""))
		source := s.open(t)
		for name, asked := range map[string][2]string{
			"chart":   {"base", "v1.24.0"},
			"version": {"istiod", "v1.24.1"},
		} {
			_, err := source.Load(t.Context(), asked[0], asked[1])
			wantError(t, err, fmt.Sprintf("load chart %s %s from ", asked[0], asked[1]), s.options.Repository, "no such chart; check --chart-repository")
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: not fs.ErrNotExist: %v", name, err)
			}
		}
		for _, asked := range [][2]string{{"../istiod", "v1.24.0"}, {"istiod", "v1.24-latest"}, {"istiod", "../v1.24.0"}, {"", ""}} {
			_, err := source.Load(t.Context(), asked[0], asked[1])
			wantError(t, err, "is not")
		}
		// What was not there is looked for again.
		s.publish("base", "v1.24.0", small(t, "base", "v1.24.0", ""))
		load(t, source, "base", "v1.24.0")
	})
}

// What comes in other than it should be is an error, leaves nothing behind, and is got when it is right again.
func TestRemoteRefusesDamage(t *testing.T) {
	archive := small(t, "istiod", "v1.24.0", "as published")
	damages := map[string]struct {
		answer func(w http.ResponseWriter)
		want   []string
	}{
		"cut off": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", strconv.Itoa(len(archive)))
			_, _ = w.Write(archive[:len(archive)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, []string{"EOF"}},
		"too short": {func(w http.ResponseWriter) { _, _ = w.Write(archive[:len(archive)/2]) }, nil},
		"too long":  {func(w http.ResponseWriter) { _, _ = w.Write(slices.Concat(archive, archive)) }, nil},
		"another": {func(w http.ResponseWriter) {
			another := slices.Clone(archive)
			another[len(another)/2]++
			_, _ = w.Write(another)
		}, []string{"digest"}},
		"missing": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, nil},
		"broken":  {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, []string{"500"}},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s *served) {
				s.publish("istiod", "v1.24.0", archive)
				source := s.open(t)
				s.on(func(w http.ResponseWriter, r *http.Request) bool {
					hit := r.URL.Path == s.pathOf("istiod", "v1.24.0", archive)
					if hit {
						damage.answer(w)
					}
					return hit
				})
				_, err := source.Load(t.Context(), "istiod", "v1.24.0")
				wantError(t, err, append(damage.want, "load chart istiod v1.24.0 from ", s.options.Repository)...)
				if left := s.cached(t); len(left) > 0 {
					t.Errorf("left in the cache: %v", left)
				}
				s.on(nil)
				load(t, source, "istiod", "v1.24.0")
			})
		})
	}
}

func TestRemoteNotAChart(t *testing.T) {
	s := serveRepository(t, false)
	s.publish("istiod", "v1.24.0", []byte("with a digest that is right"))
	_, err := s.open(t).Load(t.Context(), "istiod", "v1.24.0")
	wantError(t, err, "load chart istiod v1.24.0 from repository ", "the download is not a chart")
	if left := s.cached(t); len(left) > 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

// A version stands for one chart: the one that it was when it was first seen.
// One cache can serve several sources, whose charts are not the same because they have the same name.
func TestRemoteFetchesOnceForMany(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		s.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", ""))
		s.publish("istiod", "v1.26.0", small(t, "istiod", "v1.26.0", ""))
		source := s.open(t)
		one := s.count(func() { load(t, source, "istiod", "v1.26.0") })
		versions := s.count(func() { _, _ = s.open(t).Versions(t.Context()) })

		many := s.count(func() {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, err := source.Load(t.Context(), "istiod", "v1.24.0"); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					if _, err := source.Versions(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
		if many != one+versions {
			t.Errorf("20 loads and 20 questions for versions made %d requests, one of each %d", many, one+versions)
		}
	})
}

// One who gives up gets an answer at once, and does not take the download from those who wait.
func TestRemoteGivesUp(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		s.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", ""))
		goOn := make(chan struct{})
		s.on(func(http.ResponseWriter, *http.Request) bool { <-goOn; return false })
		release := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(release)
		source := s.open(t)

		patient := make(chan error, 1)
		go func() {
			_, err := source.Load(t.Context(), "istiod", "v1.24.0")
			patient <- err
		}()
		// However early that is, there is no answer before the release.
		brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := source.Load(brief, "istiod", "v1.24.0")
		wantError(t, err, "no answer in time", s.options.Repository, "check --chart-repository")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not a deadline: %v", err)
		}
		_, err = source.Versions(brief)
		wantError(t, err, "ask ", s.options.Repository, "no answer in time")

		release()
		if err := <-patient; err != nil {
			t.Error(err)
		}
	})
}

// The downloads themselves end with their context, also those of Helm's client, which knows none.
func TestOriginsEndWithTheirContext(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		asked, goOn := make(chan struct{}), make(chan struct{})
		s.on(func(http.ResponseWriter, *http.Request) bool { asked <- struct{}{}; <-goOn; return false })
		t.Cleanup(func() { close(goOn) })
		origin := s.open(t).origin
		for what, ask := range map[string]func(context.Context) error{
			"versions": func(ctx context.Context) error { _, err := origin.versions(ctx); return err },
			"archive":  func(ctx context.Context) error { _, err := origin.archive(ctx, "istiod", "v1.24.0"); return err },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-asked; cancel() }()
			if err := ask(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
