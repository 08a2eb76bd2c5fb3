package charts

import (
	"os"
	"testing"
)

func TestRemoteMendsItsCache(t *testing.T) {
	archive := small(t, "istiod", "v1.24.0", "")
	damages := map[string]func(t *testing.T, s *served){
		"an archive cut off": func(t *testing.T, s *served) {
			put(t, s.cached(t)[".chart"][0], string(archive[:10]))
		},
		"an archive changed": func(t *testing.T, s *served) {
			put(t, s.cached(t)[".chart"][0], string(small(t, "istiod", "v1.24.0", "changed")))
		},
		"an archive removed": func(t *testing.T, s *served) {
			if err := os.Remove(s.cached(t)[".chart"][0]); err != nil {
				t.Fatal(err)
			}
		},
		"a digest cut off": func(t *testing.T, s *served) { put(t, s.cached(t)[".digest"][0], digestOf(archive)[:20]) },
		"no digest":        func(t *testing.T, s *served) { put(t, s.cached(t)[".digest"][0], "sha256:../../x") },
		"everything removed": func(t *testing.T, s *served) {
			if err := os.RemoveAll(s.options.CacheDir); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s *served) {
				s.publish("istiod", "v1.24.0", archive)
				once := s.count(func() { load(t, s.open(t), "istiod", "v1.24.0") })
				damage(t, s)
				again := s.count(func() {
					if c := load(t, s.open(t), "istiod", "v1.24.0"); c.Digest != digestOf(archive) {
						t.Errorf("got %s", c.Digest)
					}
				})
				if again != once {
					t.Errorf("%d requests, want %d", again, once)
				}
				if asked := s.count(func() { load(t, s.open(t), "istiod", "v1.24.0") }); asked != 0 {
					t.Errorf("when it was mended, %d requests", asked)
				}
			})
		})
	}
}

func TestRemoteKeepsWhatItHad(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		before, after := small(t, "istiod", "v1.24.0", "before"), small(t, "istiod", "v1.24.0", "after")
		s.publish("istiod", "v1.24.0", before)
		load(t, s.open(t), "istiod", "v1.24.0")

		s.publish("istiod", "v1.24.0", after)
		if c := load(t, s.open(t), "istiod", "v1.24.0"); c.Metadata.Description != "before" {
			t.Errorf("got the chart %s", c.Metadata.Description)
		}
		put(t, s.cached(t)[".chart"][0], "damaged")
		record := s.cached(t)[".digest"][0]
		_, err := s.open(t).Load(t.Context(), "istiod", "v1.24.0")
		wantError(t, err, "the digest of the chart was "+digestOf(before)+" and is now "+digestOf(after), "to take the new one, remove "+record)
		if err := os.Remove(record); err != nil {
			t.Fatal(err)
		}
		if c := load(t, s.open(t), "istiod", "v1.24.0"); c.Metadata.Description != "after" {
			t.Errorf("got the chart %s", c.Metadata.Description)
		}
	})
}

func TestRemotesShareACache(t *testing.T) {
	one, two := serveRepository(t, false), serveRegistry(t, false)
	two.options.CacheDir = one.options.CacheDir
	one.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", "one"))
	two.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", "two"))
	for _, s := range []*served{one, two, one} {
		want := map[*served]string{one: "one", two: "two"}[s]
		if c := load(t, s.open(t), "istiod", "v1.24.0"); c.Metadata.Description != want {
			t.Errorf("got the chart of %s, want that of %s", c.Metadata.Description, want)
		}
	}
}

func TestRemoteWorksWithoutItsCache(t *testing.T) {
	s := serveRepository(t, false)
	s.publish("istiod", "v1.24.0", small(t, "istiod", "v1.24.0", ""))
	put(t, s.options.CacheDir, "a file where the directory should be")
	load(t, s.open(t), "istiod", "v1.24.0")
}
