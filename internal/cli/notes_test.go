package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The notes that Helm prints after an installation show commands as a user types them.
func TestNotesOfTheChartShowCommandsThatExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "test", "chart", "testdata", "*.notes.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no notes: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for line := range strings.Lines(string(text)) {
			typed, ours := strings.CutPrefix(line, "  fairlead ")
			if !ours {
				continue
			}
			seen++
			typed, _, _ = strings.Cut(typed, " > ")
			root, _ := newRoot(Streams{})
			cmd, args, err := root.Find(strings.Fields(typed))
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil && cmd.Args != nil {
				err = cmd.Args(cmd, cmd.Flags().Args())
			}
			if err == nil {
				err = cmd.ValidateRequiredFlags()
			}
			if err != nil || cmd == root {
				t.Errorf("%s: fairlead %s: %v", filepath.Base(file), strings.TrimSpace(typed), err)
			}
		}
		if seen < 4 {
			t.Errorf("%s has %d commands of fairlead", file, seen)
		}
	}
}
