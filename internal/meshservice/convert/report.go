package convert

// Action is the result for an entry.
type Action string

// The actions.
const (
	// Added: the entry for the MeshService was added after it.
	Added Action = "Added"
	// NeedsPerson: a person has to decide.
	NeedsPerson Action = "NeedsPerson"
	// NotNeeded: no setting applies to a MeshService.
	NotNeeded Action = "NotNeeded"
	// UnknownKind: the object is of a kind that is not known, and was not looked at.
	UnknownKind Action = "UnknownKind"
)

// Finding is the result for one entry.
type Finding struct {
	// Document and Line are numbers from one.
	Document int `json:"document"`
	Line     int `json:"line"`
	// Kind of the policy, and its namespace and name.
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	// Field is the path to the reference, and Service its name.
	Field   string `json:"field"`
	Service string `json:"service"`
	Action  Action `json:"action"`
	// Section is the sectionName of the added entry. Unchecked says that it is the number of the port because the name is not
	// known: it is right only if the port has no name.
	Section   string `json:"section,omitempty"`
	Unchecked bool   `json:"unchecked,omitempty"`
	Why       string `json:"why"`
}

// Report has a finding for each entry for a tag without a successor.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Changed says whether anything was added.
func (r Report) Changed() bool { return r.Count(Added) > 0 }

// Count returns the number of findings with an action.
func (r Report) Count(action Action) int {
	count := 0
	for _, f := range r.Findings {
		if f.Action == action {
			count++
		}
	}
	return count
}
