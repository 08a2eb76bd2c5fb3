package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// planned is a plan as lines of "state action object", with what can be started now marked by ">".
func planned(d decision) []string {
	start := map[attempt]bool{}
	if d.Hold == nil {
		for _, step := range startable(d.Steps) {
			start[attempt{step.Object, step.Action}] = true
		}
	}
	var lines []string
	if d.Hold != nil {
		lines = append(lines, "held: "+string(d.Hold.Code))
	}
	for _, step := range d.Steps {
		mark := " "
		if start[attempt{step.Object, step.Action}] {
			mark = ">"
		}
		object := step.Object.Kind + " " + name(step.Object)
		if step.Object.Kind == v1alpha2.MaterializeKind {
			object = ""
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %-7s %s %s", mark, step.State, step.Action, object), " "))
	}
	return lines
}

// after the point of no return, and on the way there.
var (
	makeSecond = []string{
		"> Pending apply ConfigMap environmentd-2", "> Pending apply Service persist-pubsub-2",
		"> Pending apply Service environmentd-2", "> Pending apply StatefulSet environmentd-2",
	}
	removeFirst = []string{
		"  Pending remove StatefulSet environmentd-1", "  Pending remove Service environmentd-1",
		"  Pending remove Service persist-pubsub-1", "  Pending remove ConfigMap environmentd-1",
	}
	removeSecond = []string{
		"> Pending remove StatefulSet environmentd-2", "> Pending remove Service environmentd-2",
		"> Pending remove Service persist-pubsub-2", "> Pending remove ConfigMap environmentd-2",
	}
)

// later are the same lines when it is not their turn, and started when it is.
func later(lines ...string) []string { return turned(lines, ">", " ") }

func started(lines ...string) []string { return turned(lines, " ", ">") }

func turned(lines []string, from, to string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, strings.Replace(line, from, to, 1))
	}
	return all
}

func lines(parts ...any) []string {
	var all []string
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			all = append(all, part)
		case []string:
			all = append(all, part...)
		}
	}
	return all
}

func TestPlan(t *testing.T) {
	v1, v2, v3 := func() maker { return makeMaterialize() }, func() maker { return makeMaterialize().image("v2") }, func() maker { return makeMaterialize().image("v3") }
	manual := func() maker { return v2().strategy(v1alpha2.RolloutManuallyPromote) }
	immediate := func() maker { return v2().strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime) }
	own := func(account string) maker { m := v2(); m.Spec.ServiceAccountName = account; return m }
	secured := func() maker { m := v2(); m.Spec.InternalCertificateSpec = &v1alpha2.CertificateSpec{}; return m }
	tagless := func() maker {
		m := v1()
		m.Spec.EnvironmentdImageRef = "materialize/environmentd@sha256:0123"
		return m
	}
	digested := func() maker { return tagless().serving(t, 1, tagless()) }
	// second is what serves v1 and has asked for the spec.
	second := func(b maker) maker { return b.serving(t, 1, v1()).requested(t, b, 0).reported(v1alpha2.ReasonApplying) }
	promoting := func(b maker) maker { return second(b).reported(v1alpha2.ReasonPromoting) }
	ready := "  Done    await StatefulSet environmentd-2"
	commit := lines("  Pending commit", "  Pending promote StatefulSet environmentd-2", "  Pending switch Service environmentd", removeFirst, "  Pending complete")
	committed := lines("> Pending commit", commit[1:])
	lead := lines("> Pending switch Service environmentd", removeFirst, "  Pending complete")

	cases := map[string]struct {
		scene scene
		now   int
		want  []string
		// err is what cannot be planned.
		err string
	}{
		"nothing is known": {
			scene: seeing(t, v1()),
			want:  lines("> Pending identify", "  Pending request"),
		},
		"nothing has been rolled out": {
			scene: seeing(t, v1().identified()),
			want: lines(
				"> Pending ensure ServiceAccount environmentd", "> Pending ensure Role environmentd", "> Pending ensure RoleBinding environmentd",
				"  Pending request", "  Pending apply ConfigMap environmentd-1", "  Pending apply Service persist-pubsub-1",
				"  Pending apply Service environmentd-1", "  Pending apply StatefulSet environmentd-1",
				"  Pending await StatefulSet environmentd-1", "  Pending catch up StatefulSet environmentd-1", "  Pending commit",
				"  Pending promote StatefulSet environmentd-1", "  Pending switch Service environmentd", "  Pending complete",
			),
		},
		"all is well": {
			scene: seeing(t, v1().serving(t, 1, v1())).generation(1, v1()).complete(),
		},
		"a Service is missing": {
			scene: seeing(t, v1().serving(t, 1, v1())).generation(1, v1()).without(1, "Service").complete(),
			want:  lines("> Pending apply Service persist-pubsub-1", "> Pending apply Service environmentd-1"),
		},
		"the record is missing": {
			scene: seeing(t, v1().serving(t, 1, v1())).generation(1, v1()).without(1, "ConfigMap").complete(),
			want:  lines("> Pending apply ConfigMap environmentd-1"),
		},
		"the record is missing, and the spec has changed": {
			scene: seeing(t, second(v2())).generation(1, v1()).without(1, "ConfigMap").generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines(ready, "  Running catch up StatefulSet environmentd-2", commit[:3], "  Pending remove StatefulSet environmentd-1", "  Pending remove Service environmentd-1", "  Pending remove Service persist-pubsub-1", "  Pending complete"),
		},
		"somebody else has made what serves": {
			scene: seeing(t, v1().serving(t, 1, v1())).foreign(1).complete(),
		},
		"the spec has changed": {
			scene: seeing(t, v2().serving(t, 1, v1())).generation(1, v1()).complete(),
			want: lines("> Pending request", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"a rollout was asked for, but not when": {
			scene: seeing(t, func() maker { m := second(v2()); m.Status.RolloutRequestedAt = nil; return m }()).generation(1, v1()).complete(),
			want: lines("> Pending request", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"the next generation has to be made": {
			scene: seeing(t, second(v2())).generation(1, v1()).complete(),
			want:  lines(makeSecond, "  Pending await StatefulSet environmentd-2", "  Pending catch up StatefulSet environmentd-2", commit),
		},
		"its pods are not ready": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).unready(2).complete(),
			want:  lines("  Running await StatefulSet environmentd-2", "  Pending catch up StatefulSet environmentd-2", commit),
		},
		"it does not answer": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).complete().hearsNothing(),
			want:  lines(ready, "  Running catch up StatefulSet environmentd-2", commit),
		},
		"it catches up": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines(ready, "  Running catch up StatefulSet environmentd-2", commit),
		},
		"it catches up, and a person does not want to wait": {
			scene: seeing(t, second(v2().forcePromote(hashOf(t, v2())))).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines(ready, "> Pending skip catch-up StatefulSet environmentd-2", commit),
		},
		"it is ready": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", committed),
		},
		"it is ready, and a person has to agree": {
			scene: seeing(t, second(manual())).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", "  Running approve", commit),
		},
		"it is ready, and a person has agreed to another one": {
			scene: seeing(t, second(manual().forcePromote(hashOf(t, v1())))).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", "  Running approve", commit),
		},
		"it is ready, and a person has agreed": {
			scene: seeing(t, second(manual().forcePromote(hashOf(t, manual())))).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", committed),
		},
		"it is ready, and a person had agreed to it before it was asked for": {
			scene: seeing(t, second(manual().forcePromote(hashOf(t, manual()))).ignoring(hashOf(t, manual()))).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", "  Running approve", commit),
		},
		"it is ready, and a person has agreed to it and to another one before": {
			scene: seeing(t, second(manual().forcePromote(hashOf(t, manual()))).ignoring(hashOf(t, v1()))).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", committed),
		},
		"it catches up, and a person did not want to wait before it was asked for": {
			scene: seeing(t, second(v2().forcePromote(hashOf(t, v2()))).ignoring(hashOf(t, v2()))).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines(ready, "  Running catch up StatefulSet environmentd-2", commit),
		},
		"it has taken over without being asked": {
			scene: seeing(t, second(manual())).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderIsLeader),
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", committed),
		},
		"the spec has changed before promoting": {
			scene: seeing(t, second(v3())).generation(1, v1()).generation(2, v2()).complete(),
			want: lines(removeSecond, later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"what was made for the old spec is going": {
			scene: seeing(t, second(v3())).generation(1, v1()).generation(2, v2()).going(2).without(2, "ConfigMap").without(2, "Service").complete(),
			want: lines("  Running remove StatefulSet environmentd-2", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"what was made for the same spec is going": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).going(2).complete(),
			want: lines("  Running remove StatefulSet environmentd-2", removeSecond[1:], later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"a Service of the next generation is going": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).losing(2, "Service").complete().hears(v1alpha2.LeaderInitializing),
			want:  lines(ready, "  Running catch up StatefulSet environmentd-2", commit),
		},
		"the record of the next generation is going": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).losing(2, "ConfigMap").complete(),
			want: lines(removeSecond[:3], "  Running remove ConfigMap environmentd-2", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"somebody else has made the next generation": {
			scene: seeing(t, second(v2())).foreign(1).foreign(2).complete(),
			want: lines("> Pending remove StatefulSet environmentd-2", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit[:3], "  Pending remove StatefulSet environmentd-1", "  Pending complete"),
		},
		"the spec has changed back": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, v2(), 0)).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines(removeSecond, "  Pending withdraw"),
		},
		"the spec has changed back, and nothing is left": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, v2(), 0)).generation(1, v1()).complete(),
			want:  lines("> Pending withdraw"),
		},
		"the spec has changed back, and what serves is not ready": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, v2(), 0).reported(v1alpha2.ReasonApplying)).generation(1, v1()).unready(1).complete(),
			want:  lines("> Pending withdraw", "  Running await StatefulSet environmentd-1"),
		},
		"the spec has changed back, as is written down, and what serves is not ready": {
			scene: seeing(t, v1().serving(t, 1, v1()).reported(v1alpha2.ReasonApplying)).generation(1, v1()).unready(1).complete(),
			want:  lines("  Running await StatefulSet environmentd-1"),
		},
		"what serves has served, and is not ready": {
			scene: seeing(t, v1().serving(t, 1, v1())).generation(1, v1()).unready(1).complete(),
		},
		"it took too long": {
			scene: seeing(t, second(v2().timeout("1m"))).generation(1, v1()).generation(2, v2().timeout("1m")).complete().hears(v1alpha2.LeaderInitializing),
			now:   60,
			want:  lines("> Pending cancel", later(removeSecond...)),
		},
		"it took too long, as is written down": {
			scene: seeing(t, second(v2().timeout("1m")).reported(v1alpha2.ReasonRolloutTimeout)).generation(1, v1()).generation(2, v2().timeout("1m")).complete(),
			now:   60,
			want:  lines(removeSecond, "  Failed  cancel"),
		},
		"it took too long, and nothing is left": {
			scene: seeing(t, second(v2().timeout("1m")).reported(v1alpha2.ReasonRolloutTimeout)).generation(1, v1()).complete(),
			now:   1000,
			want:  lines("  Failed  cancel"),
		},
		"it has not taken too long": {
			scene: seeing(t, second(v2().timeout("1m"))).generation(1, v1()).generation(2, v2().timeout("1m")).complete().hears(v1alpha2.LeaderReadyToPromote),
			now:   59,
			want:  lines(ready, "  Done    catch up StatefulSet environmentd-2", committed),
		},
		"it took too long, with downtime": {
			scene: seeing(t, second(immediate().timeout("1m"))).generation(1, v1()).without(1, "StatefulSet").generation(2, immediate().timeout("1m")).complete(),
			now:   60,
			want:  lines("> Pending apply StatefulSet environmentd-1", "  Pending cancel", later(removeSecond...)),
		},
		"it took too long, and is promoting": {
			scene: seeing(t, promoting(v2().timeout("1m"))).generation(1, v1()).generation(2, v2().timeout("1m")).complete().hears(v1alpha2.LeaderReadyToPromote),
			now:   1000,
			want:  lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"with downtime, what serves is to end first": {
			scene: seeing(t, second(immediate())).generation(1, v1()).complete(),
			want: lines("> Pending remove StatefulSet environmentd-1", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit[:3], removeFirst[1:], "  Pending complete"),
		},
		"with downtime, what served is going": {
			scene: seeing(t, second(immediate())).generation(1, v1()).going(1).complete(),
			want: lines("  Running remove StatefulSet environmentd-1", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit[:3], removeFirst[1:], "  Pending complete"),
		},
		"with downtime, what served is gone": {
			scene: seeing(t, second(immediate())).generation(1, v1()).without(1, "StatefulSet").complete(),
			want: lines(makeSecond, "  Pending await StatefulSet environmentd-2", "  Pending catch up StatefulSet environmentd-2",
				commit[:3], removeFirst[1:], "  Pending complete"),
		},
		"with downtime, what serves is somebody else's": {
			scene: seeing(t, second(immediate())).foreign(1).complete(),
			want: lines("> Pending apply ConfigMap inherited-1", "  Pending remove StatefulSet environmentd-1", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit[:3], "  Pending complete"),
		},
		"with downtime, what serves is somebody else's, and there is a record of it": {
			scene: seeing(t, second(immediate())).foreign(1).kept(1).complete(),
			want: lines("> Pending remove StatefulSet environmentd-1", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit[:3], "  Pending remove ConfigMap inherited-1", "  Pending complete"),
		},
		"with downtime, what served was somebody else's, and it took too long": {
			scene: seeing(t, second(immediate().timeout("1m"))).foreign(1).ended(1).complete(),
			now:   60,
			want:  lines("> Pending apply StatefulSet environmentd-1", "  Pending cancel"),
		},
		"with downtime, what served was somebody else's, changed back": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, immediate(), 0)).foreign(1).ended(1).complete(),
			want:  lines("> Pending apply StatefulSet environmentd-1", "  Pending withdraw"),
		},
		"with downtime, what served was somebody else's and is going, changed back": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, immediate(), 0)).foreign(1).kept(1).going(1).complete(),
			want:  lines("  Running apply StatefulSet environmentd-1", "  Pending withdraw"),
		},
		"with downtime, changed back": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, immediate(), 0).reported(v1alpha2.ReasonApplying)).generation(1, v1()).without(1, "StatefulSet").generation(2, immediate()).complete(),
			want:  lines("> Pending apply StatefulSet environmentd-1", later(removeSecond...), "  Pending withdraw", "  Pending await StatefulSet environmentd-1"),
		},
		"promoting, and not asked yet": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and it takes over": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderPromoting),
			want:  lines("  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and it does not answer": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().hearsNothing(),
			want:  lines("  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and it has forgotten all": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines("  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting with downtime, and it has forgotten all": {
			scene: seeing(t, second(immediate()).reported(v1alpha2.ReasonPromoting).strategy(v1alpha2.RolloutWaitUntilReady)).generation(1, v1()).generation(2, immediate()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines("> Pending skip catch-up StatefulSet environmentd-2", "  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and it has forgotten all, and downtime is asked for next": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting).strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime)).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines("  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and the spec has changed": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting).image("v3")).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and the spec has changed back": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting).image("v1")).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and its StatefulSet was deleted": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting).image("v3")).generation(1, v1()).generation(2, v2()).without(2, "StatefulSet").complete().hearsNothing(),
			want:  lines("> Pending apply StatefulSet environmentd-2", "  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and all of it was deleted": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).complete().hearsNothing(),
			want:  lines(makeSecond, "  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and all of it was deleted, and nobody knows what it was made of": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting).image("v3")).generation(1, v1()).complete().hearsNothing(),
			want:  lines(makeSecond, "  Running promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and nobody knows what its pods were made of": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting).image("v3")).generation(1, v1()).generation(2, v2()).without(2, "ConfigMap").complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and what serves has lost its pods": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).without(1, "StatefulSet").generation(2, v2()).complete().hearsNothing(),
			want: lines("> Pending ensure StatefulSet environmentd-1", "  Running promote StatefulSet environmentd-2", "  Pending switch Service environmentd",
				removeFirst[1:], "  Pending complete"),
		},
		"promoting with downtime, and what served is gone": {
			scene: seeing(t, promoting(immediate())).generation(1, v1()).without(1, "StatefulSet").generation(2, immediate()).complete().hearsNothing(),
			want:  lines("  Running promote StatefulSet environmentd-2", "  Pending switch Service environmentd", removeFirst[1:], "  Pending complete"),
		},
		"it leads, and what served is on its way out": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).without(1, "StatefulSet").generation(2, v2()).complete().hears(v1alpha2.LeaderIsLeader),
			want: lines("  Done    promote StatefulSet environmentd-2", "> Pending switch Service environmentd",
				removeFirst[1:], "  Pending complete"),
		},
		"promoting what somebody else has made": {
			scene: seeing(t, func() maker { m := promoting(v2()); m.Status.RequestedRolloutHash = ""; return m }()).foreign(1).foreign(2).complete().hears(v1alpha2.LeaderReadyToPromote),
			want: lines("> Pending promote StatefulSet environmentd-2", "  Pending switch Service environmentd",
				"  Pending remove StatefulSet environmentd-1", "  Pending complete"),
		},
		"it leads": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderIsLeader),
			want:  lines("  Done    promote StatefulSet environmentd-2", lead),
		},
		"it leads, and users are led to it": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().leadTo(2).hears(v1alpha2.LeaderIsLeader),
			want:  lines("  Done    promote StatefulSet environmentd-2", "  Done    switch Service environmentd", started(removeFirst...), "  Pending complete"),
		},
		"users are led to it, and it has forgotten all": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).generation(2, v2()).complete().leadTo(2),
			want:  lines("  Done    promote StatefulSet environmentd-2", "  Done    switch Service environmentd", started(removeFirst...), "  Pending complete"),
		},
		"what served before is going": {
			scene: seeing(t, promoting(v2())).generation(1, v1()).going(1).without(1, "ConfigMap").without(1, "Service").generation(2, v2()).complete().leadTo(2),
			want:  lines("  Done    promote StatefulSet environmentd-2", "  Done    switch Service environmentd", "  Running remove StatefulSet environmentd-1", "  Pending complete"),
		},
		"what served before is gone": {
			scene: seeing(t, promoting(v2())).generation(2, v2()).complete().leadTo(2),
			want:  lines("  Done    promote StatefulSet environmentd-2", "  Done    switch Service environmentd", "> Pending complete"),
		},
		"another ServiceAccount is asked for": {
			scene: seeing(t, own("theirs").serving(t, 1, own("theirs"))).generation(1, own("theirs")).complete().leaves(v1().serving(t, 1, v1())),
			want:  lines("> Pending drop ServiceAccount environmentd"),
		},
		"another ServiceAccount is asked for, and what serves needs the old one": {
			scene: seeing(t, second(own("theirs"))).generation(1, v1()).generation(2, own("theirs")).complete().hears(v1alpha2.LeaderInitializing),
			want:  lines(ready, "  Running catch up StatefulSet environmentd-2", commit),
		},
		"another ServiceAccount is asked for, and nobody knows what serves needs": {
			scene: seeing(t, second(own("theirs"))).foreign(1).generation(2, own("theirs")).complete().leaves(v1().serving(t, 1, v1())).hears(v1alpha2.LeaderInitializing),
			want: lines(ready, "  Running catch up StatefulSet environmentd-2", commit[:3], "  Pending remove StatefulSet environmentd-1",
				"  Pending complete"),
		},
		"promoting, and another ServiceAccount and no certificate is asked for": {
			scene: seeing(t, second(secured()).reported(v1alpha2.ReasonPromoting).spec(own("theirs"))).generation(1, own("first")).generation(2, secured()).complete().
				leaves(secured().serving(t, 1, own("first"))).hears(v1alpha2.LeaderReadyToPromote),
			want: lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"promoting, and another ServiceAccount is asked for, and nobody knows what takes over needs": {
			scene: seeing(t, second(secured()).reported(v1alpha2.ReasonPromoting).spec(own("theirs"))).generation(1, own("first")).generation(2, secured()).without(2, "ConfigMap").
				complete().leaves(secured().serving(t, 1, own("first"))).hears(v1alpha2.LeaderReadyToPromote),
			want: lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"an image without a tag is asked for": {
			scene: seeing(t, tagless().serving(t, 1, v1())).generation(1, v1()).complete(),
			want:  lines("  Failed  request"),
			err:   "has a digest and no tag",
		},
		"an image without a tag is asked for, and what serves has lost its pods": {
			scene: seeing(t, tagless().serving(t, 1, v1())).generation(1, v1()).without(1, "StatefulSet").complete(),
			want:  lines("> Pending ensure StatefulSet environmentd-1", "  Failed  request"),
			err:   "has a digest and no tag",
		},
		"an image without a tag is asked for first": {
			scene: seeing(t, tagless()),
			want:  lines("> Pending identify", "  Failed  request"),
			err:   "has a digest and no tag",
		},
		"what serves has an image without a tag": {
			scene: seeing(t, digested()).foreign(1),
			want: lines("> Pending ensure ServiceAccount environmentd", "> Pending ensure Role environmentd", "> Pending ensure RoleBinding environmentd",
				"> Pending ensure Service environmentd"),
			err: "has a digest and no tag",
		},
		"what serves has an image without a tag, and all else is there": {
			scene: seeing(t, digested()).foreign(1).leaves(v1().serving(t, 1, v1())),
			want:  lines("> Pending ensure Service environmentd"),
			err:   "has a digest and no tag",
		},
		"paused": {
			scene: seeing(t, v2().serving(t, 1, v1()).annotate(fairlead.AnnotationPaused, "true")).generation(1, v1()).complete(),
			want: lines("held: Paused", "  Pending request", later(makeSecond...), "  Pending await StatefulSet environmentd-2",
				"  Pending catch up StatefulSet environmentd-2", commit),
		},
		"paused while promoting": {
			scene: seeing(t, promoting(v2()).annotate(fairlead.AnnotationPaused, "true")).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want:  lines("> Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"being deleted while promoting": {
			scene: seeing(t, func() maker { m := promoting(v2()); m.DeletionTimestamp = &metav1.Time{Time: epoch}; return m }()).generation(1, v1()).generation(2, v2()).complete(),
			want:  lines("held: BeingDeleted", "  Pending promote StatefulSet environmentd-2", later(lead...)),
		},
		"hashed by a Fairlead to come": {
			scene: seeing(t, func() maker { m := v1().serving(t, 1, v1()); m.Status.RolloutHashVersion = 99; return m }()).generation(1, v1()).complete(),
			want:  lines("held: UnknownHashVersion"),
		},
		"more generations than there should be": {
			scene: seeing(t, v1().serving(t, 5, v1())).generation(5, v1()).generation(2, v2()).complete(),
			want:  removeSecond,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(c.scene.Observed, epoch.Add(time.Duration(c.now)*time.Second))
			if err := errors.Join(d.specErr, d.sharedSpecErr); (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, planned(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, step := range d.Steps {
				if step.Reason.Code == "" || step.Reason.Message == "" {
					t.Errorf("nobody knows why to %s %s", step.Action, step.Object)
				}
			}
		})
	}
}
