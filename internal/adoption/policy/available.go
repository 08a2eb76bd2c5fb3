package policy

import (
	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/capacity"
)

// divideByRoom divides replicas by the room that clusters have for more of them. Replicas that are placed stay where they are: more
// of them are divided by the room that is left, and fewer by where they are. All are divided anew only if replicaScheduling of the
// placement has changed. If there is not enough room for those that are to be placed, or a cluster has not reported any, all stay as
// they are.
func (p *Placed) divideByRoom(placement policyv1alpha1.Placement, targets []Member, demand Demand, now Placed) {
	there, placed := make([]int64, len(targets)), int64(0)
	for i, m := range targets {
		there[i] = replicasIn(now, m.Name, demand.Replicas)
		placed += there[i]
	}
	wanted, steady := int64(demand.Replicas), now.Former || equality.Semantic.DeepEqual(now.Scheduling, placement.ReplicaScheduling)
	shares := there
	switch {
	case steady && placed >= wanted:
		if placed > wanted {
			shares = asNumbers(divideReplicas(demand.Replicas, there))
		}
	case steady:
		more := p.divideMore(targets, wanted-placed, demand, make([]int64, len(targets)))
		for i := range more {
			shares[i] += more[i]
		}
	default:
		// What the replicas use themselves is room for them.
		if all := p.divideMore(targets, wanted, demand, there); all != nil {
			shares = all
		}
	}
	for i, m := range targets {
		if shares[i] > 0 || demand.Replicas == 0 {
			p.Clusters = append(p.Clusters, workv1alpha2.TargetCluster{Name: m.Name, Replicas: int32(shares[i])})
		}
	}
}

// replicasIn are the replicas that a resource has in a cluster. One that was not divided has all of them in each of its clusters.
func replicasIn(now Placed, cluster string, all int32) int64 {
	for _, c := range now.Clusters {
		if c.Name != cluster {
			continue
		}
		if !now.Former && (now.Scheduling == nil || now.Scheduling.ReplicaSchedulingType != policyv1alpha1.ReplicasDivided) {
			return int64(all)
		}
		return int64(c.Replicas)
	}
	return 0
}

// divideMore divides further replicas by the room of clusters, and by what they use there already; nil if they cannot be placed, which
// is recorded.
func (p *Placed) divideMore(targets []Member, replicas int64, demand Demand, used []int64) []int64 {
	weights, room, left := make([]int64, len(targets)), int64(0), replicas
	var notReported []string
	for i, m := range targets {
		if m.Room == nil {
			notReported = append(notReported, m.Name)
		}
		weights[i] = roomIn(m, demand) + used[i]
		room += weights[i]
		left -= used[i]
	}
	switch {
	case len(targets) == 0:
		return nil
	case len(notReported) > 0 && left > 0:
		p.NotReported = notReported
		return nil
	case room < replicas:
		p.NoRoom = int32(replicas - room)
		return nil
	}
	return asNumbers(divideReplicas(int32(replicas), weights))
}

// roomIn is the number of further replicas that a cluster has room for. One that cannot be reached has none.
func roomIn(m Member, demand Demand) int64 {
	if !m.Ready {
		return 0
	}
	return capacity.Replicas(m.Room, demand.Requests)
}

func asNumbers(shares []int32) []int64 {
	all := make([]int64, len(shares))
	for i, share := range shares {
		all[i] = int64(share)
	}
	return all
}
