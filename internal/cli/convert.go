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

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/convert"
)

func newConvertCommand(flags *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	c := converter{}
	cmd := &cobra.Command{
		Use:   "convert -f FILE|DIR|-",
		Short: "Add entries for MeshServices to the policies of a mesh",
		Long: `Add entries for MeshServices to the policies of a mesh.

For each entry of spec.to that targets a kuma.io/service such as demo-app_kuma-demo_svc_5000, the command adds an entry for
the MeshService of that service, selected by labels, with the name of port 5000 as sectionName. The old entry stays, for
consumers that are not switched yet. Lines are only added: comments, order and other documents stay the same, and a converted
entry is not converted again.

The names of ports are those of the Services and MeshServices in the files of --services. Without that flag, they are those
of the cluster, if there is one. A port whose name is not known is written by its number, which is right only if the port has
no name: the finding and a comment in the file say to check it.

All kinds of policies with spec.to are converted. Of a MeshLoadBalancingStrategy, crossZone is left out, because it does not
apply to a MeshService. Routes are listed with their lines and not converted, because their effect depends on the zones that
have instances. Listed as well are names without a port, such as those of universal, unless --port is given or the service
has one port only, and entries that would take precedence over an entry for the MeshService itself, or over another entry for
the same kuma.io/service that is listed: give all policies of a mesh at once. An object of a kind that the command does not
know is listed, and the exit code is 1.

The converted file is printed to standard output, and the findings to standard error.`,
		Example: `  fairlead convert -f policies.yaml
  fairlead convert -f policies/ -w --services services.yaml
  fairlead convert -f policies/ --check`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			inputs, err := c.read(streams.In)
			if err != nil {
				return err
			}
			if err := c.findPorts(cmd, flags, streams.In, inputs); err != nil {
				return err
			}
			files, err := c.convert(inputs)
			if err != nil {
				return err
			}
			return c.writeResults(streams, files, format)
		},
	}
	its := cmd.Flags()
	its.StringArrayVarP(&c.from, "filename", "f", nil, "file or directory with policies in YAML or JSON (-: standard input)")
	its.BoolVarP(&c.write, "write", "w", false, "write the files instead of printing them")
	its.BoolVar(&c.check, "check", false, "only show the entries to add, and exit with 3 if there are any")
	its.Uint16Var(&c.options.Port, "port", 0, "port of services whose kuma.io/service has no port")
	its.StringArrayVar(&c.services, "services", nil, "file or directory with Services or MeshServices, whose ports have the names; no cluster is asked")
	its.StringVar(&c.systemNamespace, "mesh-namespace", "kuma-system", "system namespace of the mesh")
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

// converter is what `convert` was asked for.
type converter struct {
	from            []string
	write, check    bool
	services        []string
	systemNamespace string
	options         convert.Options
	// notLookedUp is why the names of ports were not looked up.
	notLookedUp error
}

// convertInput is a file as it was read.
type convertInput struct {
	name string
	text []byte
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
		case from == "-" && slices.Contains(c.services, "-"):
			return console.UsageErrorf("-f and --services cannot both read the standard input: name a file for one of them")
		}
	}
	if slices.Contains(c.services, "") {
		return console.UsageErrorf("--services names no file: give one, a directory, or - for the standard input")
	}
	return nil
}

// read reads all files, and fails if it cannot read any one.
func (c *converter) read(stdin io.Reader) ([]convertInput, error) {
	var inputs []convertInput
	var failed []error
	for _, from := range c.from {
		paths, err := listFiles(from)
		failed = append(failed, err)
		for _, path := range paths {
			name, text, err := console.ReadFile(stdin, path)
			failed = append(failed, err)
			inputs = append(inputs, convertInput{name, text})
		}
	}
	return inputs, errors.Join(failed...)
}

// convert converts all files, and fails if it cannot convert any one.
func (c *converter) convert(inputs []convertInput) ([]convertedFile, error) {
	texts := make([][]byte, len(inputs))
	for i, in := range inputs {
		texts[i] = in.text
	}
	var files []convertedFile
	var failed []error
	converted, errs := convert.ConvertAll(texts, c.options)
	for i, in := range inputs {
		if errs[i] != nil {
			failed = append(failed, fmt.Errorf("convert %s: %w", in.name, errs[i]))
			continue
		}
		report := converted[i].Report
		files = append(files, convertedFile{in.name, report.Changed(), append([]convert.Finding{}, report.Findings...), converted[i].Text})
	}
	return files, errors.Join(failed...)
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
	if err := format.Print(out, files, func() { c.printConversion(out, files, format) }); err != nil {
		return err
	}
	if kinds := unknownKinds(files); len(kinds) > 0 {
		return console.ExitError{Code: console.ExitFailed, Message: fmt.Sprintf("convert does not know %s: look for values of kuma.io/service there yourself", strings.Join(kinds, ", "))}
	}
	if c.check && changed {
		return console.ExitError{Code: console.ExitUnfinished}
	}
	return nil
}

// unknownKinds are the kinds of objects that were not looked at.
func unknownKinds(files []convertedFile) []string {
	var kinds []string
	for _, f := range files {
		for _, finding := range f.Findings {
			if finding.Action == convert.UnknownKind {
				kinds = append(kinds, finding.Kind)
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func (c *converter) printConversion(w io.Writer, files []convertedFile, format render.Format) {
	added := "added"
	if c.check {
		added = "to add"
	}
	words := map[convert.Action]string{
		convert.Added: added, convert.NeedsPerson: "needs you", convert.NotNeeded: "none", convert.UnknownKind: "unknown kind",
	}
	counts := map[convert.Action]int{}
	unchecked := 0
	var rows [][]string
	for _, f := range files {
		for _, finding := range f.Findings {
			counts[finding.Action]++
			word := words[finding.Action]
			if finding.Unchecked {
				unchecked++
				word += ", check"
			}
			what := strings.TrimSuffix(finding.Field, ".targetRef")
			if finding.Service != "" {
				what += ", " + finding.Service
			}
			rows = append(rows, []string{
				fmt.Sprintf("%s:%d", f.File, finding.Line), finding.Kind + " " + render.OrDash(finding.Policy), word, what + ": " + finding.Why,
			})
		}
	}
	check := ""
	if unchecked > 0 {
		check = fmt.Sprintf(" (%d with a sectionName to check)", unchecked)
	}
	fmt.Fprintf(w, "%s %s%s, %d for you to look at.\n", render.Count(counts[convert.Added], "entry"), added, check,
		counts[convert.NeedsPerson]+counts[convert.UnknownKind])
	render.PrintRows(w, format, []string{"PLACE", "POLICY", "ENTRY", "WHAT"}, rows)
	if unchecked > 0 && c.notLookedUp != nil {
		render.Note(w, fmt.Sprintf("The names of ports were not looked up in a cluster: %s. Without a cluster, give the Services with --services.", console.OneLine(c.notLookedUp)))
	}
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
