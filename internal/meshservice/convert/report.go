package convert

// Action is what became of an entry of the old kind.
type Action string

// The actions.
const (
	// Added: the entry for the MeshService was added after it.
	Added Action = "Added"
	// NeedsPerson: only a person can know what to write.
	NeedsPerson Action = "NeedsPerson"
	// NotNeeded: there is nothing in it that a MeshService gets.
	NotNeeded Action = "NotNeeded"
)

// Finding is what became of one entry.
type Finding struct {
	// Document is its number in the file, and Line that of the entry, both from one.
	Document int `json:"document"`
	Line     int `json:"line"`
	// Kind of the policy, and its namespace and name.
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	// Field is the path to the reference, and Service what it names.
	Field   string `json:"field"`
	Service string `json:"service"`
	Action  Action `json:"action"`
	Why     string `json:"why"`
}

// Report is what became of each entry of the old kind that has no new one yet.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Changed says whether anything was added.
func (r Report) Changed() bool { return r.Count(Added) > 0 }

// Count is how many entries that became of.
func (r Report) Count(action Action) int {
	count := 0
	for _, f := range r.Findings {
		if f.Action == action {
			count++
		}
	}
	return count
}
