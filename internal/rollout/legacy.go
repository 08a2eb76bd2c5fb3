package rollout

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Phrases of messages from before status.progress existed. They stay as they were written then.
const (
	legacyBesides   = "; besides, "
	legacyLastState = "; at the end: "
)

var (
	legacyPods    = regexp.MustCompile(`, (\d+) of (\d+) ready$`)
	legacySilence = regexp.MustCompile(`environmentd (does not answer|answers).*$`)
	legacyAnswers = map[string]v1alpha2.LeaderStatus{
		", it has yet to catch up":                    v1alpha2.LeaderInitializing,
		", it has started anew, and is not ready yet": v1alpha2.LeaderInitializing,
		", it takes over":                             v1alpha2.LeaderPromoting,
		", what it leads to is to be what leads":      v1alpha2.LeaderIsLeader,
	}
)

// legacyProgress reads the progress of a rollout from the message of the condition. Operators up to
// schema version 2 of the CRD wrote nothing else down. It is used only for a status without progress, which the next change
// of the condition replaces. Nil: there is none.
func legacyProgress(m *v1alpha2.Materialize) *v1alpha2.RolloutProgress {
	condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionUpToDate)
	if condition == nil {
		return nil
	}
	next := m.Status.ActiveGeneration + 1
	p := &v1alpha2.RolloutProgress{Generation: next}
	switch v1alpha2.Reason(condition.Reason) {
	case v1alpha2.ReasonReadyToPromote:
		p.Leader = &v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderReadyToPromote}
		p.Message = "ready, and not promoted"
		return p
	case v1alpha2.ReasonRolloutTimeout:
		_, p.Message, _ = strings.Cut(condition.Message, legacyLastState)
		return p
	case v1alpha2.ReasonFailedDeploy:
		p.Message = condition.Message
		return p
	case v1alpha2.ReasonApplying, v1alpha2.ReasonPromoting:
	default:
		return nil
	}
	said, _, _ := strings.Cut(condition.Message, legacyBesides)
	begins, waits, _ := strings.Cut(said, ": ")
	switch begins {
	case fmt.Sprintf("generation %d is made", next), fmt.Sprintf("generation %d takes over", next):
	case fmt.Sprintf("generation %d waits", next):
		if strings.HasPrefix(waits, "it is paused") {
			p.Message = "paused"
		}
		return p
	default:
		p.Generation = m.Status.ActiveGeneration
	}
	p.Message = waits
	if found := legacyPods.FindStringSubmatch(waits); found != nil {
		p.Pods = &v1alpha2.PodCount{Ready: legacyNumber(found[1]), Desired: legacyNumber(found[2])}
	}
	if silence := legacySilence.FindString(waits); silence != "" {
		p.Leader = &v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderUnknown, Message: silence}
	}
	for ending, status := range legacyAnswers {
		if strings.HasSuffix(waits, ending) {
			p.Leader = &v1alpha2.LeaderAnswer{Status: status}
		}
	}
	return p
}

func legacyNumber(digits string) int32 {
	n, _ := strconv.ParseInt(digits, 10, 32)
	return int32(n)
}
