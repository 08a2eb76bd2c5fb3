package installer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/revision/helm/charts"
)

// shelf is a source of charts that can be taken away.
type shelf struct {
	versions []string
	gone     bool
	asked    int

	forgotten int
}

func (s *shelf) Versions(context.Context) ([]string, error) {
	if s.gone {
		return nil, errors.New("no answer")
	}
	return s.versions, nil
}

func (s *shelf) Load(_ context.Context, _, version string) (*charts.Chart, error) {
	s.asked++
	for _, v := range s.versions {
		if v == version && !s.gone {
			return &charts.Chart{Digest: version}, nil
		}
	}
	return nil, errors.New("not to be had")
}

func (s *shelf) Forget(string, string) { s.forgotten++ }
func (*shelf) Refresh() time.Duration  { return time.Minute }
func (*shelf) String() string          { return "shelf" }

func TestChartsAreAskedForRarely(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	source := &shelf{versions: []string{"v1.24.0"}}
	c := NewCharts(source)
	c.now = func() time.Time { return now }
	load := func(version string) error {
		chart, err := c.Load(t.Context(), "istiod", version)
		if err == nil && chart.Digest != version {
			t.Errorf("got the chart of %s", chart.Digest)
		}
		return err
	}

	steps := []struct {
		when    string
		after   time.Duration
		gone    bool
		version string
		asked   int
		check   func(error) bool
	}{
		{"the first time", 0, false, "v1.24.0", 1, func(err error) bool { return err == nil }},
		{"soon again", time.Second, false, "v1.24.0", 1, func(err error) bool { return err == nil }},
		{"when there may be another", time.Minute, false, "v1.24.0", 2, func(err error) bool { return err == nil }},
		{"when the source is away, what is known will do", time.Minute, true, "v1.24.0", 3, func(err error) bool { return err == nil }},
		{"and the source is not asked with every event", time.Second, true, "v1.24.0", 3, func(err error) bool { return err == nil }},
		{"what was never had cannot be", 0, true, "v1.26.0", 4, func(err error) bool { return errors.As(err, new(*UnavailableError)) }},
		{"nor is that asked with every event", time.Second, true, "v1.26.0", 4, func(err error) bool { return errors.As(err, new(*UnavailableError)) }},
		{"one that does not exist is known not to", time.Minute, false, "v1.26.0", 5, func(err error) bool { return errors.As(err, new(*charts.NotFoundError)) }},
	}
	for _, step := range steps {
		now, source.gone = now.Add(step.after), step.gone
		if err := load(step.version); !step.check(err) {
			t.Errorf("%s: %v", step.when, err)
		}
		if source.asked != step.asked {
			t.Errorf("%s: asked %d times, want %d", step.when, source.asked, step.asked)
		}
	}
}

func TestChartsForgetNothingWhenACallerGivesUp(t *testing.T) {
	source := &shelf{versions: []string{"v1.24.0"}, gone: true}
	c := NewCharts(source)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Load(ctx, "istiod", "v1.24.0"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	source.gone = false
	if _, err := c.Load(t.Context(), "istiod", "v1.24.0"); err != nil {
		t.Errorf("what one caller did not wait for is kept from another: %v", err)
	}
}
