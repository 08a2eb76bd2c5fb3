package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/convert"
)

func newConvertCommand(streams Streams) *cobra.Command {
	var format render.Format
	c := converter{}
	cmd := &cobra.Command{
		Use:   "convert -f FILE|DIR|-",
		Short: "Add entries for MeshServices to the policies of a mesh",
		Long: `Add entries for MeshServices to the policies of a mesh.

For each entry of spec.to that targets a kuma.io/service such as demo-app_kuma-demo_svc_5000, the command adds an entry for
the MeshService of that service, selected by labels, with sectionName "5000". The old entry stays, for consumers that are not
switched yet. Lines are only added: comments, order and other documents stay the same, and a converted entry is not converted
again.

Routes are listed with their lines and not converted, because their effect depends on the zones that have instances. Names
without a port, such as those of universal, are listed as well, unless --port is given.

The converted file is printed to standard output, and the findings to standard error. The command needs no cluster.`,
		Example: `  fairlead convert -f policies.yaml
  fairlead convert -f policies/ -w
  fairlead convert -f policies/ --check`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			files, err := c.read(streams.In)
			if err != nil {
				return err
			}
			return c.writeResults(streams, files, format)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&c.from, "filename", "f", nil, "file or directory with policies in YAML or JSON (-: standard input)")
	flags.BoolVarP(&c.write, "write", "w", false, "write the files instead of printing them")
	flags.BoolVar(&c.check, "check", false, "only show the entries to add, and exit with 3 if there are any")
	flags.Uint16Var(&c.options.Port, "port", 0, "port of services whose kuma.io/service has no port")
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

// converter is what `convert` was asked for.
type converter struct {
	from         []string
	write, check bool
	options      convert.Options
}

// convertedFile is what became of a file.
type convertedFile struct {
	File     string            `json:"file"`
	Changed  bool              `json:"changed"`
	Findings []convert.Finding `json:"findings"`

	text []byte
}

// validate refuses what cannot be meant.
func (c *converter) validate() error {
	if c.write && c.check {
		return console.UsageErrorf("-w writes and --check does not: give one of them")
	}
	for _, from := range c.from {
		switch {
		case from == "":
			return console.UsageErrorf("-f names no file: give one, a directory, or - for the standard input")
		case from == "-" && c.write:
			return console.UsageErrorf("-w cannot write the standard input: leave out -w, and what it should be is printed")
		}
	}
	return nil
}

// read converts all files, and fails if it cannot convert any one.
func (c *converter) read(stdin io.Reader) ([]convertedFile, error) {
	var files []convertedFile
	var failed []error
	for _, from := range c.from {
		paths, err := listFiles(from)
		failed = append(failed, err)
		for _, path := range paths {
			file, err := c.convert(stdin, path)
			if err == nil {
				files = append(files, file)
			}
			failed = append(failed, err)
		}
	}
	return files, errors.Join(failed...)
}

func (c *converter) convert(stdin io.Reader, path string) (convertedFile, error) {
	name, in, err := console.ReadFile(stdin, path)
	if err != nil {
		return convertedFile{}, err
	}
	out, report, err := convert.Convert(in, c.options)
	if err != nil {
		return convertedFile{}, fmt.Errorf("convert %s: %w", name, err)
	}
	return convertedFile{name, report.Changed(), append([]convert.Finding{}, report.Findings...), out}, nil
}

// writeResults writes the files or prints them, and tells what was done.
func (c *converter) writeResults(streams Streams, files []convertedFile, format render.Format) error {
	prints := !c.write && !c.check && format != render.JSON && format != render.YAML
	if prints && len(files) > 1 {
		return console.UsageErrorf("there are %d files: give -w to write them, or --check to see what there is to add", len(files))
	}
	changed := false
	for _, f := range files {
		changed = changed || f.Changed
		if c.write && f.Changed {
			if err := replaceFile(f.File, f.text); err != nil {
				return err
			}
		}
		if prints {
			if _, err := streams.Out.Write(f.text); err != nil {
				return err
			}
		}
	}
	out := streams.Out
	if prints {
		out = streams.Err
	}
	if err := format.Print(out, files, func() { printConversion(out, files, c.check, format) }); err != nil {
		return err
	}
	if c.check && changed {
		return console.ExitError{Code: console.ExitUnfinished}
	}
	return nil
}

func printConversion(w io.Writer, files []convertedFile, check bool, format render.Format) {
	added := "added"
	if check {
		added = "to add"
	}
	words := map[convert.Action]string{convert.Added: added, convert.NeedsPerson: "needs you", convert.NotNeeded: "none"}
	counts := map[convert.Action]int{}
	var rows [][]string
	for _, f := range files {
		for _, finding := range f.Findings {
			counts[finding.Action]++
			rows = append(rows, []string{
				fmt.Sprintf("%s:%d", f.File, finding.Line), finding.Kind + " " + render.OrDash(finding.Policy), words[finding.Action],
				fmt.Sprintf("%s, %s: %s", strings.TrimSuffix(finding.Field, ".targetRef"), finding.Service, finding.Why),
			})
		}
	}
	fmt.Fprintf(w, "%s %s, %d for you to look at.\n", render.Count(counts[convert.Added], "entry"), added, counts[convert.NeedsPerson])
	render.PrintRows(w, format, []string{"PLACE", "POLICY", "ENTRY", "WHAT"}, rows)
}

// listFiles are the files that -f names: one, or those with policies below a directory, without hidden ones.
func listFiles(from string) ([]string, error) {
	if from == "-" {
		return []string{from}, nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{from}, nil
	}
	var files []string
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != from && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no file of YAML or JSON in %s: name the directory that has some", from)
	}
	return files, err
}

// replaceFile writes a file so that it is never there by half; a link stays one.
func replaceFile(path string, text []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(target), ".fairlead-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(text)
	if err := errors.Join(err, file.Chmod(info.Mode().Perm()), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(file.Name(), target)
}
