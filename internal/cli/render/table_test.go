package render

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableKeepsTitles(t *testing.T) {
	var out bytes.Buffer
	Table(&out, 40, []string{"FIELD", "FROM", "BACK TO"}, [][]string{{"image", "a rather long name of an image", "another rather long name"}})
	want := `FIELD   FROM
         BACK TO
image   a rather long name of an image
         another rather long name
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
