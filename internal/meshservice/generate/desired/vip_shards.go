package desired

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// VIPConfigMap is the name of the first ConfigMap, in the system namespace, that records the VIP of each value of kuma.io/service of
// a mesh. It is there once all VIPs of a mesh are.
func VIPConfigMap(mesh string) string { return "fairlead-mesh-" + mesh + "-tags" }

// VIPShard is the name of one of the ConfigMaps of that record, which are numbered from 0 without a gap.
func VIPShard(mesh string, shard int) string {
	if shard == 0 {
		return VIPConfigMap(mesh)
	}
	return VIPConfigMap(mesh) + "-" + strconv.Itoa(shard)
}

// ShardOf is the number of the shard with a name, and false if no shard of the mesh has it.
func ShardOf(name, mesh string) (shard int, found bool) {
	text, found := strings.CutPrefix(name, VIPConfigMap(mesh)+"-")
	if !found {
		return 0, name == VIPConfigMap(mesh)
	}
	shard, err := strconv.Atoi(text)
	return shard, err == nil && shard > 0 && shard < maxShards && VIPShard(mesh, shard) == name
}

const (
	// maxShardSize bounds a shard, so that all of its values fit into an annotation: those of an object have 256 KiB.
	maxShardSize = 192 << 10
	// entrySize is that of a VIP and the time since when its value is not served, beside the value.
	entrySize = 64
	// maxShards is far above what the largest range needs.
	maxShards = 1 << 16
)

// MergeShards returns the record of all shards. A value that a crash left in two has the same VIP in both.
func MergeShards(shards []TagVIPs) TagVIPs {
	all := TagVIPs{VIPs: map[string]string{}, UnservedSince: map[string]time.Time{}}
	for _, shard := range slices.Backward(shards) {
		maps.Copy(all.VIPs, shard.VIPs)
		maps.Copy(all.UnservedSince, shard.UnservedSince)
	}
	return all
}

// Shards distributes a record. A value stays in the shard that it is in, unless that is too large, and a new one gets the first with
// room. Values move to later shards only: written from the last to the first, no value is missing in between.
func (t TagVIPs) Shards(there []TagVIPs) []TagVIPs {
	shards := make([]TagVIPs, max(len(there), 1))
	sizes := make([]int, len(shards))
	put := func(shard int, service string) {
		if shards[shard].VIPs == nil {
			shards[shard] = TagVIPs{VIPs: map[string]string{}, UnservedSince: map[string]time.Time{}}
		}
		shards[shard].VIPs[service] = t.VIPs[service]
		if since, unserved := t.UnservedSince[service]; unserved {
			shards[shard].UnservedSince[service] = since
		}
		sizes[shard] += len(service) + entrySize
	}
	hasRoom := func(shard int, service string) bool { return sizes[shard]+len(service)+entrySize <= maxShardSize }
	placed := map[string]bool{}
	// moved are values with the first shard that they may move to.
	moved := map[string]int{}
	for i := range there {
		for _, service := range slices.Sorted(maps.Keys(there[i].VIPs)) {
			switch _, known := t.VIPs[service]; {
			case !known || placed[service]:
			case hasRoom(i, service):
				put(i, service)
				placed[service] = true
				delete(moved, service)
			default:
				moved[service] = i + 1
			}
		}
	}
	from := 0
	for _, service := range slices.Sorted(maps.Keys(t.VIPs)) {
		if placed[service] {
			continue
		}
		// New values come in order, so shards that were full stay so.
		shard := max(from, moved[service])
		for shard < len(shards) && !hasRoom(shard, service) {
			shard++
		}
		if shard == len(shards) {
			shards, sizes = append(shards, TagVIPs{}), append(sizes, 0)
		}
		if moved[service] == 0 {
			from = shard
		}
		put(shard, service)
	}
	return shards
}
