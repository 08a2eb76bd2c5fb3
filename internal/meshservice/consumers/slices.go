package consumers

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// sliceCount is the most MeshConsumerSlices that a Mesh has. A slice of a Mesh with 20,000 consumers has about 80 of them, in
// some 20 KB; in a small Mesh every consumer has a slice to itself.
const sliceCount = 256

// sliceName is the name of the slice that records a consumer. It depends on nothing but the names, so that a consumer is never
// recorded twice.
func sliceName(mesh, consumer string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(consumer)) // cannot fail
	return fmt.Sprintf("%s-%02x", mesh, hash.Sum32()%sliceCount)
}

// stamp is what the consumers of a slice have followed. A process that dies while it writes leaves slices with other stamps.
type stamp struct {
	intent, retry string
	revert        bool
}

func stampOf(record *kumav1alpha1.MeshMigration) stamp {
	return stamp{intent: record.Intent, retry: record.Retry, revert: record.Revert}
}

// stampsOf returns the stamp of each consumer.
func stampsOf(all []fairleadv1alpha1.MeshConsumerSlice) map[string]stamp {
	stamps := map[string]stamp{}
	for i := range all {
		s := &all[i]
		for j := range s.Consumers {
			stamps[s.Consumers[j].Name] = stamp{intent: s.Intent, retry: s.Retry, revert: s.Revert}
		}
	}
	return stamps
}

// IsInStatus says that the status of a Mesh has the record itself, as earlier versions write it, and that slices do not count.
// There may be some that a newer version had left to the earlier one.
func IsInStatus(mesh *kumav1alpha1.Mesh) bool {
	return mesh.Status.Migration != nil && len(mesh.Status.Migration.Consumers) > 0
}

// WithRecord returns a copy of a Mesh whose status has the consumers of the slices, from which Decide and commands read. A Mesh
// without a status, because it was created again, gets its record back from the slices.
func WithRecord(mesh *kumav1alpha1.Mesh, all []fairleadv1alpha1.MeshConsumerSlice) *kumav1alpha1.Mesh {
	if len(all) == 0 || IsInStatus(mesh) {
		return mesh
	}
	mesh = mesh.DeepCopy()
	if header := headerOf(mesh, all); header != nil {
		mesh.Status.Migration = header
	}
	record := mesh.Status.Migration
	for i := range all {
		for j := range all[i].Consumers {
			record.Consumers = append(record.Consumers, *all[i].Consumers[j].DeepCopy())
		}
	}
	sortConsumers(record)
	countConsumers(record)
	return mesh
}

// headerOf is the record without consumers, from a slice that follows the intent of the Mesh or else from the first; nil where
// the status of the Mesh has it, and is no older.
func headerOf(mesh *kumav1alpha1.Mesh, all []fairleadv1alpha1.MeshConsumerSlice) *kumav1alpha1.MeshMigration {
	intent, _ := IntentOf(mesh) // nil if it cannot be read
	from := -1
	if intent != nil {
		from = slices.IndexFunc(all, func(s fairleadv1alpha1.MeshConsumerSlice) bool { return s.Intent == intent.ID })
	}
	if status := mesh.Status.Migration; status != nil && (from < 0 || status.Intent == intent.ID) {
		return nil
	}
	s := &all[max(from, 0)]
	return &kumav1alpha1.MeshMigration{
		Intent: s.Intent, Retry: s.Retry, Revert: s.Revert, BatchSize: s.BatchSize, DelaySeconds: s.DelaySeconds,
	}
}

// slicesFor returns the slices of a record, sorted by name; none for a nil record.
func slicesFor(mesh string, record *kumav1alpha1.MeshMigration) []*fairleadv1alpha1.MeshConsumerSlice {
	if record == nil {
		return nil
	}
	byName := map[string]*fairleadv1alpha1.MeshConsumerSlice{}
	var all []*fairleadv1alpha1.MeshConsumerSlice
	for i := range record.Consumers {
		name := sliceName(mesh, record.Consumers[i].Name)
		s := byName[name]
		if s == nil {
			s = &fairleadv1alpha1.MeshConsumerSlice{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
					kumav1alpha1.LabelMesh: mesh, kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy,
				}},
				Mesh: mesh, Intent: record.Intent, Retry: record.Retry, Revert: record.Revert,
				BatchSize: record.BatchSize, DelaySeconds: record.DelaySeconds,
			}
			byName[name] = s
			all = append(all, s)
		}
		s.Consumers = append(s.Consumers, record.Consumers[i])
	}
	slices.SortFunc(all, func(a, b *fairleadv1alpha1.MeshConsumerSlice) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// sliceWrite is a slice to create, update or delete.
type sliceWrite struct {
	action sliceAction
	slice  *fairleadv1alpha1.MeshConsumerSlice
	// starts is how many more consumers of the slice are in progress afterwards.
	starts int
}

type sliceAction int

const (
	createSlice sliceAction = iota
	updateSlice
	deleteSlice
)

// sliceWrites are the writes that make the recorded slices those of a record. A process may die after any of them: consumers
// end before others start, so that never more are in progress than a batch has.
func sliceWrites(mesh string, recorded []fairleadv1alpha1.MeshConsumerSlice, record *kumav1alpha1.MeshMigration) []sliceWrite {
	there, wanted := map[string]*fairleadv1alpha1.MeshConsumerSlice{}, map[string]bool{}
	for i := range recorded {
		there[recorded[i].Name] = &recorded[i]
	}
	var writes []sliceWrite
	for _, want := range slicesFor(mesh, record) {
		wanted[want.Name] = true
		have := there[want.Name]
		if have == nil {
			writes = append(writes, sliceWrite{createSlice, want, inProgress(want)})
		} else if now := merged(have, want); !equality.Semantic.DeepEqual(have, now) {
			writes = append(writes, sliceWrite{updateSlice, now, inProgress(now) - inProgress(have)})
		}
	}
	for i := range recorded {
		if !wanted[recorded[i].Name] {
			writes = append(writes, sliceWrite{deleteSlice, &recorded[i], -inProgress(&recorded[i])})
		}
	}
	slices.SortStableFunc(writes, func(a, b sliceWrite) int { return cmp.Compare(a.starts, b.starts) })
	return writes
}

func inProgress(slice *fairleadv1alpha1.MeshConsumerSlice) int {
	n := 0
	for i := range slice.Consumers {
		if isRunning(slice.Consumers[i].State) {
			n++
		}
	}
	return n
}

// merged is a slice with the content of another, and its own metadata otherwise.
func merged(have, want *fairleadv1alpha1.MeshConsumerSlice) *fairleadv1alpha1.MeshConsumerSlice {
	now := want.DeepCopy()
	now.TypeMeta, now.ObjectMeta = have.TypeMeta, *have.ObjectMeta.DeepCopy()
	for name, value := range want.Labels {
		metav1.SetMetaDataLabel(&now.ObjectMeta, name, value)
	}
	return now
}

// SwitchedIn returns the switched consumers of a slice.
func SwitchedIn(slice *fairleadv1alpha1.MeshConsumerSlice) map[string]bool {
	return switched(slice.Consumers)
}

// Switched returns the consumers of a mesh whose proxies reach MeshServices beyond those that they list. The Mesh is one of
// WithRecord.
func Switched(mesh *kumav1alpha1.Mesh) map[string]bool {
	if mesh.Status.Migration == nil {
		return map[string]bool{}
	}
	return switched(mesh.Status.Migration.Consumers)
}

func switched(consumers []kumav1alpha1.MigratedConsumer) map[string]bool {
	names := map[string]bool{}
	for i := range consumers {
		if consumers[i].Switched {
			names[consumers[i].Name] = true
		}
	}
	return names
}

func sortConsumers(record *kumav1alpha1.MeshMigration) {
	slices.SortFunc(record.Consumers, func(a, b kumav1alpha1.MigratedConsumer) int { return cmp.Compare(a.Name, b.Name) })
}
