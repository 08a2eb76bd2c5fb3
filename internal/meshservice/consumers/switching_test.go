package consumers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestIntentOf(t *testing.T) {
	cases := map[string]struct {
		text string
		want string // the intent as it is written, or part of why it cannot be read
	}{
		"the least":        {`{"id":"x"}`, `{"id":"x","batchSize":1}`},
		"all of it":        {`{"id":"x","batchSize":3,"delay":"1m","revert":true,"allowDisconnected":true,"consumers":["b","a","b"]}`, `{"id":"x","batchSize":3,"delay":"1m0s","revert":true,"allowDisconnected":true,"consumers":["a","b"]}`},
		"unknown field":    {`{"id":"x","later":1}`, `{"id":"x","batchSize":1}`},
		"not JSON":         {`yes`, "read JSON"},
		"no identity":      {`{"batchSize":1}`, "id is missing"},
		"negative size":    {`{"id":"x","batchSize":-1}`, "batchSize -1 is less than 1"},
		"negative delay":   {`{"id":"x","delay":"-1s"}`, "delay -1s is negative"},
		"endless delay":    {`{"id":"x","delay":"2000000h"}`, "is longer than"},
		"a nameless one":   {`{"id":"x","consumers":[""]}`, "empty name"},
		"names its remedy": {`{`, "`fairlead migrate mesh default`"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mesh := makeMesh(kumav1alpha1.ModeReachableBackendRefs)
			mesh.Annotations[kumav1alpha1.AnnotationMigrate] = c.text
			intent, err := IntentOf(mesh)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, which does not say %q", err, c.want)
				}
				return
			}
			if got, _ := intent.Annotation(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzIntent(f *testing.F) {
	f.Add(`{"id":"x","batchSize":3,"delay":"1m","revert":true,"consumers":["b","a"]}`)
	f.Add(`{"id":"x","delay":"999999h"}`)
	f.Fuzz(func(t *testing.T, text string) {
		intent, err := parseIntent(text)
		if err != nil {
			return
		}
		written, err := intent.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseIntent(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if rewritten, _ := again.Annotation(); rewritten != written || intent.delaySeconds() < 0 {
			t.Errorf("%s became %s", written, rewritten)
		}
	})
}

func TestFollow(t *testing.T) {
	const (
		waiting, switching, switched   = kumav1alpha1.ConsumerWaiting, kumav1alpha1.ConsumerSwitching, kumav1alpha1.ConsumerSwitched
		reverting, reverted, failed    = kumav1alpha1.ConsumerReverting, kumav1alpha1.ConsumerReverted, kumav1alpha1.ConsumerFailed
		gone                           = kumav1alpha1.ConsumerState("")
		over, back, onTags, onServices = false, true, false, true
	)
	cases := []struct {
		state    kumav1alpha1.ConsumerState
		switched bool
		was, is  bool
		meant    bool
		want     kumav1alpha1.ConsumerState
	}{
		{waiting, onTags, over, over, true, waiting},
		{waiting, onTags, over, over, false, gone},
		{switching, onServices, over, over, true, switching},
		{switching, onServices, over, over, false, switching},
		{switched, onServices, over, over, true, switched},
		{switched, onServices, over, over, false, switched},
		{failed, onServices, over, over, true, waiting},
		{failed, onServices, over, over, false, failed},
		{waiting, onTags, over, back, true, gone},
		{switching, onServices, over, back, true, waiting},
		{switching, onServices, over, back, false, switched},
		{switched, onServices, over, back, true, waiting},
		{switched, onServices, over, back, false, switched},
		{failed, onServices, over, back, true, waiting},
		{failed, onServices, over, back, false, failed},
		{waiting, onServices, back, back, true, waiting},
		{reverting, onTags, back, back, true, reverting},
		{reverting, onTags, back, back, false, gone},
		{reverted, onTags, back, back, true, gone},
		{failed, onTags, back, back, true, waiting},
		{waiting, onServices, back, over, true, switched},
		{waiting, onServices, back, over, false, switched},
		{reverting, onTags, back, over, true, waiting},
		{reverting, onTags, back, over, false, gone},
		{reverted, onTags, back, over, true, waiting},
		{failed, onTags, back, over, true, waiting},
		{switched, onServices, back, over, true, switched},
	}
	for _, c := range cases {
		record := &kumav1alpha1.MeshMigration{Intent: "old", Revert: c.was, Consumers: []kumav1alpha1.MigratedConsumer{
			{Name: "a", State: c.state, Switched: c.switched, Batch: 3},
		}}
		intent := Intent{ID: "new", BatchSize: 1, Revert: c.is, Consumers: []string{"a"}}
		if !c.meant {
			intent.Consumers = []string{"b"}
		}
		startIntent(record, intent, "", epoch, nil)
		got := gone
		if len(record.Consumers) == 1 {
			got = record.Consumers[0].State
			if record.Consumers[0].Switched != c.switched || record.Consumers[0].Batch != 0 {
				t.Errorf("%+v: became %+v", c, record.Consumers[0])
			}
		}
		if got != c.want {
			t.Errorf("%+v: became %q", c, got)
		}
	}
}

// opened is a world with one consumer whose batch is open and has been sent.
func opened(t *testing.T, listed ...string) (*world, *kumav1alpha1.MigratedConsumer) {
	w := newWorld(t)
	w.ask(Intent{ID: "one"})
	w.mesh.Status.Migration = &kumav1alpha1.MeshMigration{Intent: "one", BatchSize: 1, Consumers: []kumav1alpha1.MigratedConsumer{{
		Name: "shop/Deployment/a", State: kumav1alpha1.ConsumerSwitching, Switched: true, Batch: 1,
		Since: metav1.NewTime(epoch), Proxies: listed,
	}}}
	w.sent = Switched(w.mesh)
	return w, &w.mesh.Status.Migration.Consumers[0]
}

func (w *world) proxy(name string, c model.Connection) {
	w.proxies[name] = &proxy{connection: c, Proxy: model.Proxy{
		ID: model.ProxyID{Mesh: "default", Namespace: "shop", Name: name}, Consumer: "shop/Deployment/a",
	}}
}

func TestJudgement(t *testing.T) {
	content := model.Connection{Connected: true, Current: true}
	silent := model.Connection{Connected: true}
	refusing := model.Connection{Connected: true, NACK: "no"}
	cases := map[string]struct {
		listed  []string
		there   map[string]model.Connection
		unsent  bool
		after   time.Duration
		started time.Duration // after the batch was opened
		since   time.Duration // when it was opened, by its record
		want    kumav1alpha1.ConsumerState
		says    string
	}{
		"all are content":                     {listed: []string{"a", "b"}, there: map[string]model.Connection{"a": content, "b": content}, want: "Switched"},
		"content with what they had before":   {listed: []string{"a"}, there: map[string]model.Connection{"a": content}, unsent: true, after: time.Hour, want: "Switching"},
		"one is silent":                       {listed: []string{"a", "b"}, there: map[string]model.Connection{"a": content, "b": silent}, after: 59 * time.Second, want: "Switching"},
		"one is silent for too long":          {listed: []string{"a", "b"}, there: map[string]model.Connection{"a": content, "b": silent}, after: time.Minute, want: "Failed", says: "proxy b did not acknowledge"},
		"one refuses":                         {listed: []string{"a", "b"}, there: map[string]model.Connection{"a": silent, "b": refusing}, want: "Failed", says: "proxy b rejected its configuration (NACK): no"},
		"one that came later refuses":         {listed: []string{"a"}, there: map[string]model.Connection{"a": content, "b": refusing}, want: "Failed", says: "proxy b rejected"},
		"one that came later is silent":       {listed: []string{"a"}, there: map[string]model.Connection{"a": content, "b": silent}, want: "Switched"},
		"one is away":                         {listed: []string{"a"}, there: map[string]model.Connection{"a": {}}, after: 59 * time.Second, want: "Switching"},
		"one is lost":                         {listed: []string{"a"}, there: map[string]model.Connection{"a": {}}, after: time.Minute, want: "Failed", says: "proxy a was connected when the batch started"},
		"a refusal from before it went":       {listed: []string{"a"}, there: map[string]model.Connection{"a": {NACK: "old"}}, want: "Switching"},
		"an operator that has just restarted": {listed: []string{"a"}, there: map[string]model.Connection{"a": {}}, after: 2 * time.Minute, started: 90 * time.Second, want: "Switching"},
		"lost, an operator later":             {listed: []string{"a"}, there: map[string]model.Connection{"a": {}}, after: 150 * time.Second, started: 90 * time.Second, want: "Failed", says: "proxy a was connected"},
		"a record from a clock ahead":         {listed: []string{"a"}, there: map[string]model.Connection{"a": {}}, after: time.Minute, since: time.Hour, want: "Failed"},
		"nobody was connected":                {there: map[string]model.Connection{"a": {}}, want: "Switched", says: "no proxy was connected"},
		"replaced by one that is content":     {listed: []string{"a"}, there: map[string]model.Connection{"b": content}, want: "Switched"},
		"replaced by one that is not there":   {listed: []string{"a"}, there: map[string]model.Connection{"b": {}}, want: "Switching"},
		"replaced by one that never comes":    {listed: []string{"a"}, there: map[string]model.Connection{"b": {}}, after: time.Minute, want: "Failed", says: "proxy b replaced a connected proxy"},
		"replaced beside one that never was":  {listed: []string{"a"}, there: map[string]model.Connection{"b": content, "z": {}}, want: "Switched"},
		"scaled down":                         {listed: []string{"a", "b"}, there: map[string]model.Connection{"b": content}, want: "Switched"},
		"scaled to nothing just now":          {listed: []string{"a"}, after: time.Second, want: "Switching"},
		"scaled to nothing":                   {listed: []string{"a"}, after: time.Minute, want: "Switched", says: "all proxies of the consumer are deleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, consumer := opened(t, c.listed...)
			for name, connection := range c.there {
				w.proxy(name, connection)
			}
			if c.unsent {
				w.sent = map[string]bool{}
			}
			w.started = epoch.Add(-time.Second)
			if c.started > 0 {
				w.started = epoch.Add(c.started)
			}
			consumer.Since = metav1.NewTime(epoch.Add(c.since))
			d := Decide(w.observe(), epoch.Add(c.after))
			got := d.Record.Consumers[0]
			if got.State != c.want || !strings.Contains(got.Message, c.says) {
				t.Errorf("%s: %q, want %s: %q", got.State, got.Message, c.want, c.says)
			}
			if !got.Switched {
				t.Error("its proxies would be sent back by that")
			}
			if got.State == kumav1alpha1.ConsumerSwitching && !c.unsent && d.RequeueAt.IsZero() {
				t.Error("nobody would look again")
			}
		})
	}
}

// A proxy that is connected to another process counts as to the configuration that it has acknowledged or rejected.
func TestReportedJudgement(t *testing.T) {
	switched := model.Connection{Connected: true, Current: true, Switched: true}
	tags := model.Connection{Connected: true, Current: true}
	for name, c := range map[string]struct {
		there model.Connection
		after time.Duration
		want  kumav1alpha1.ConsumerState
		says  string
	}{
		"acknowledged the switch":             {there: switched, want: "Switched"},
		"acknowledged what it had before":     {there: tags, want: "Switching"},
		"acknowledged nothing else in time":   {there: tags, after: time.Minute, want: "Failed", says: "proxy a did not acknowledge"},
		"rejected the switch":                 {there: model.Connection{Connected: true, Switched: true, NACK: "no"}, want: "Failed", says: "rejected its configuration (NACK): no"},
		"rejected what it had before":         {there: model.Connection{Connected: true, NACK: "no"}, want: "Switching"},
		"connected to nobody":                 {want: "Switching"},
		"connected to nobody for a long time": {after: time.Minute, want: "Failed", says: "proxy a was connected when the batch started"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := opened(t, "a")
			w.proxy("a", c.there)
			w.started = epoch.Add(-time.Second)
			o := w.observe()
			o.Sent, o.Reported = nil, true
			d := Decide(o, epoch.Add(c.after))
			if got := d.Record.Consumers[0]; got.State != c.want || !strings.Contains(got.Message, c.says) {
				t.Errorf("%s: %q, want %s: %q", got.State, got.Message, c.want, c.says)
			}
		})
	}
}

func TestNobodyAsked(t *testing.T) {
	w := newWorld(t)
	w.shop()
	if d := Decide(w.observe(), w.now); d.Record != nil || d.Condition != nil || len(d.Events) > 0 {
		t.Errorf("decided %+v", d)
	}
}

func TestPrune(t *testing.T) {
	const workloads, podsAndJobs = 10_000, 100 // as docs/meshservice/switching.md promises
	record := &kumav1alpha1.MeshMigration{}
	add := func(name string, state kumav1alpha1.ConsumerState, minute int) {
		record.Consumers = append(record.Consumers, kumav1alpha1.MigratedConsumer{
			Name: name, State: state, Switched: state != kumav1alpha1.ConsumerWaiting, Since: metav1.NewTime(epoch.Add(time.Duration(minute) * time.Minute)),
		})
	}
	for i := range podsAndJobs + 1 {
		add(fmt.Sprintf("shop/TaskRun/run-%03d", i), kumav1alpha1.ConsumerSwitched, i-1000)
	}
	add("shop/Deployment/here", kumav1alpha1.ConsumerSwitched, 0)
	add("shop/Deployment/failed", kumav1alpha1.ConsumerFailed, 0)
	add("shop/Deployment/never", kumav1alpha1.ConsumerWaiting, 0)
	for i := range workloads + 1 {
		add(fmt.Sprintf("shop/Deployment/gone-%05d", i), kumav1alpha1.ConsumerSwitched, i)
	}
	for i := range podsAndJobs + 1 {
		add(fmt.Sprintf("shop/Pod/debug-%03d", i), kumav1alpha1.ConsumerSwitched, i)
	}
	prune(record, func(name string) bool { return name == "shop/Deployment/here" })
	left := map[string]bool{}
	for _, c := range record.Consumers {
		left[c.Name] = true
	}
	if want := 2 + workloads + podsAndJobs; len(left) != want {
		t.Errorf("%d are left, want %d", len(left), want)
	}
	for name, want := range map[string]bool{
		"shop/Deployment/here": true, "shop/Deployment/failed": true, "shop/Deployment/never": false,
		"shop/Deployment/gone-00000": false, "shop/Deployment/gone-00001": true, "shop/Pod/debug-000": false, "shop/Pod/debug-001": true,
		"shop/TaskRun/run-000": false, "shop/TaskRun/run-100": false,
	} {
		if left[name] != want {
			t.Errorf("%s is left: %t, want %t", name, left[name], want)
		}
	}
}

// A retry is known by its value: one that was there before the intent, or that was followed, asks for nothing.
func TestRetryByIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		followed, said string
		want           kumav1alpha1.ConsumerState
	}{
		"none":             {"", "", kumav1alpha1.ConsumerFailed},
		"new":              {"", "2001-01-01T00:00:00Z", kumav1alpha1.ConsumerSwitching},
		"followed already": {"x", "x", kumav1alpha1.ConsumerFailed},
		"another":          {"x", "y", kumav1alpha1.ConsumerSwitching},
		"removed since":    {"x", "", kumav1alpha1.ConsumerFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w, consumer := opened(t, "a")
			w.proxy("a", model.Connection{Connected: true, Current: true})
			consumer.State = kumav1alpha1.ConsumerFailed
			w.mesh.Status.Migration.Retry = c.followed
			w.annotate(fairlead.AnnotationRetry, c.said)
			d := Decide(w.observe(), w.now)
			if got := d.Record.Consumers[0].State; got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			w.mesh.Status.Migration = d.Record
			if s := ReadProgress(w.mesh); !s.Observed {
				t.Error("it is not followed")
			}
		})
	}
}

func TestPlanBatches(t *testing.T) {
	w := newWorld(t)
	intent := Intent{ID: "x", BatchSize: 2}
	d := PlanBatches(w.mesh, intent, []string{"shop/Deployment/b", "shop/Deployment/a", "shop/Deployment/c"}, w.now)
	var got []string
	for _, s := range d.Plan.Steps {
		got = append(got, fmt.Sprintf("%s@%d", s.Object.Name, s.Batch))
	}
	if text := strings.Join(got, " "); text != "a@1 b@1 c@2" || d.Outcome != passage.InProgress {
		t.Errorf("%s: %s", d.Outcome, text)
	}
	intent.Revert = true
	if d := PlanBatches(w.mesh, intent, []string{"a"}, w.now); len(d.Plan.Steps) > 0 {
		t.Errorf("there is nothing to take back: %v", d.Plan.Steps)
	}
}

// Counted are all consumers of the mesh, also those that are not part of the intent and those that are reverted.
func TestAllConsumersAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		intents         []Intent
		switched, total int32
	}{
		"all":                  {[]Intent{{ID: "one"}}, 3, 3},
		"some":                 {[]Intent{{ID: "one", Consumers: []string{"shop/Deployment/a"}}}, 1, 3},
		"one of them reverted": {[]Intent{{ID: "one"}, {ID: "two", Revert: true, Consumers: []string{"shop/Deployment/b"}}}, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, consumer := range []string{"a", "b", "c"} {
				w.start(consumer, consumer+"-0")
			}
			for i, intent := range c.intents {
				w.asks(i*600, intent)
			}
			w.run()
			for what, record := range map[string]*kumav1alpha1.MeshMigration{"status": w.mesh.Status.Migration, "record": w.record().Status.Migration} {
				if record.Switched != c.switched || record.Total != c.total {
					t.Errorf("the %s has %d of %d, want %d of %d", what, record.Switched, record.Total, c.switched, c.total)
				}
			}
		})
	}
}

// An event of a watched proxy is a decision on all consumers: watched are those of the open batch, and those that are missing.
func TestFewProxiesAreWatched(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		w.start(fmt.Sprintf("c-%02d", i), fmt.Sprintf("c-%02d-0", i), func(p *proxy) { p.never = i == 40 })
	}
	w.ask(Intent{ID: "one", BatchSize: 2})
	d := Decide(w.observe(), w.now)
	var watched []string
	for id := range d.Watched {
		watched = append(watched, id.Name)
	}
	slices.Sort(watched)
	if diff := cmp.Diff([]string{"c-00-0", "c-01-0", "c-40-0"}, watched); diff != "" {
		t.Errorf("others are watched:\n%s", diff)
	}
}

// Consumers without a proxy are reverted at once: they take no batches from those that run.
func TestAbsentConsumersTakeNoBatchOfARevert(t *testing.T) {
	for name, c := range map[string]struct {
		paused bool
		want   map[string]kumav1alpha1.ConsumerState
	}{
		"running": {false, map[string]kumav1alpha1.ConsumerState{
			"shop/Deployment/a": kumav1alpha1.ConsumerReverting, "shop/Deployment/gone": kumav1alpha1.ConsumerReverted, "shop/TaskRun/once": kumav1alpha1.ConsumerReverted,
		}},
		"paused": {true, map[string]kumav1alpha1.ConsumerState{
			"shop/Deployment/a": kumav1alpha1.ConsumerWaiting, "shop/Deployment/gone": kumav1alpha1.ConsumerWaiting, "shop/TaskRun/once": kumav1alpha1.ConsumerWaiting,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start("a", "a-0")
			w.asks(0, Intent{ID: "one"})
			w.run()
			o := w.observe()
			o.Mesh = o.Mesh.DeepCopy()
			text, err := Intent{ID: "two", Revert: true, BatchSize: 1}.Annotation()
			if err != nil {
				t.Fatal(err)
			}
			o.Mesh.Annotations = map[string]string{kumav1alpha1.AnnotationMigrate: text}
			if c.paused {
				o.Mesh.Annotations[fairlead.AnnotationPaused] = "true"
			}
			for _, absent := range []string{"shop/Deployment/gone", "shop/TaskRun/once"} {
				o.Mesh.Status.Migration.Consumers = append(o.Mesh.Status.Migration.Consumers, kumav1alpha1.MigratedConsumer{
					Name: absent, Switched: true, State: kumav1alpha1.ConsumerSwitched, Since: metav1.NewTime(w.now),
				})
			}
			got := map[string]kumav1alpha1.ConsumerState{}
			for _, consumer := range Decide(o, w.now).Record.Consumers {
				got[consumer.Name] = consumer.State
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
