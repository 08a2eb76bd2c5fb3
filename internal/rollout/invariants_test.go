package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// leads tells whether the environmentd of a generation is the leader.
func (c *cluster) leads(generation int64) bool {
	set := c.set(fmt.Sprintf("mz%s-environmentd-%d", testID, generation))
	return set != nil && c.daemons[set.GetUID()] != nil && c.daemons[set.GetUID()].status == v1alpha2.LeaderIsLeader
}

func (c *cluster) promoting() bool { return hasReason(c.m.Status, v1alpha2.ReasonPromoting) }

// checkApply: what serves is not touched, and users are not led elsewhere, until the next generation leads.
func (c *cluster) checkApply(key passage.Object, object *unstructured.Unstructured) {
	if len(object.GetOwnerReferences()) == 0 {
		c.t.Errorf("%s would belong to nobody", key)
	}
	if generation := objects.GenerationOf(object); generation != 0 && generation == c.m.Status.ActiveGeneration && c.objects[key] != nil && !sameSpec(c.objects[key], object) {
		c.t.Errorf("%s is changed while it serves", key)
	}
	if key.Kind != "Service" || name(key) != "environmentd" {
		return
	}
	selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
	active := c.m.Status.ActiveGeneration
	if to := selector[v1alpha2.LabelGeneration]; to != fmt.Sprint(active) && !(to == fmt.Sprint(active+1) && c.promoting() && c.leads(active+1)) {
		c.t.Errorf("users are led to generation %s while %d serves", to, active)
	}
}

func (c *cluster) checkDelete(key passage.Object) {
	generation := objects.GenerationOf(c.objects[key])
	if generation != c.m.Status.ActiveGeneration || generation == 0 {
		return
	}
	downtime := c.m.Spec.RolloutStrategy == v1alpha2.RolloutImmediatelyPromoteCausingDowntime && key.Kind == "StatefulSet"
	if !downtime && !(c.promoting() && c.public() == fmt.Sprint(generation+1)) {
		c.t.Errorf("%s is deleted while it serves", key)
	}
}

// checkStatus: what is promoting goes on to the end with the request that it was.
func (c *cluster) checkStatus(before, now v1alpha2.MaterializeStatus) {
	if !hasReason(before, v1alpha2.ReasonPromoting) {
		if now.LastCompletedRolloutHash != before.LastCompletedRolloutHash && before.ResourceID != "" && before.RolloutHashVersion == now.RolloutHashVersion {
			c.t.Errorf("a rollout was completed without being promoted")
		}
		return
	}
	completed := now.ActiveGeneration == before.ActiveGeneration+1
	if now.RequestedRolloutHash != before.RequestedRolloutHash && !(completed && now.RequestedRolloutHash == now.LastCompletedRolloutHash) {
		c.t.Errorf("the request moves from %s to %s while promoting", before.RequestedRolloutHash, now.RequestedRolloutHash)
	}
	if !hasReason(now, v1alpha2.ReasonPromoting) && !completed {
		c.t.Errorf("promoting ends without being completed: %+v", now)
	}
}

// checkPromote: there is a note of it, and it is the one that was asked for.
func (c *cluster) checkPromote(d *daemon) {
	if !c.promoting() {
		c.t.Error("promoted before that was written down")
	}
	if d.spec == nil || d.late {
		return // what others have made tells nothing, and what was lost is made of the spec that is there
	}
	if hash := c.hashes.of(d.spec); hash != c.m.Status.RequestedRolloutHash {
		c.t.Errorf("promoted is the pod of %.8s, and asked for was %.8s", hash, c.m.Status.RequestedRolloutHash)
	}
}
