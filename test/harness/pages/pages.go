// Package pages reads the commands in the pages of the documentation, and compares what they print with what the pages show.
package pages

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Page is a page of the documentation as lines, with the commands of its console blocks.
type Page struct {
	Path     string
	Lines    []string
	Commands []Command
}

// Command is what a reader types, and the lines of the page that show what it prints.
type Command struct {
	Text       string
	Line       int      // of the page that the command ends in, counted from 1
	Shown      []string // the output as the page shows it
	Confirmed  bool     // the command asks, and the reader says yes
	Background bool
}

// Read finds the commands of a page: the lines that begin with a dollar in blocks of the language console. Blocks of any other
// language are not run.
func Read(path string) (*Page, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := parse(string(content), false)
	p.Path = path
	return p, nil
}

// Commands are the commands in what a demo printed.
func Commands(printed string) []Command { return parse(printed+"\n== ", true).Commands }

func parse(text string, inConsole bool) *Page {
	p := &Page{Lines: strings.Split(text, "\n")}
	for i := 0; i < len(p.Lines); i++ {
		line := p.Lines[i]
		switch text, isCommand := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inConsole = line == "```console"
		case inConsole && isCommand:
			for strings.Contains(text, "<<EOF") && !strings.HasSuffix(text, "\nEOF") {
				i++
				text += "\n" + p.Lines[i]
			}
			p.Commands = append(p.Commands, p.command(text, i+1))
		}
	}
	return p
}

// endsOutput tells whether a line is the next command, the end of a block or the next title of a demo.
func endsOutput(line string) bool {
	return strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "== ")
}

// command is a command whose output begins after a line.
func (p *Page) command(text string, line int) Command {
	c := Command{Text: text, Line: line, Background: strings.HasSuffix(text, "&")}
	end := line
	for !endsOutput(p.Lines[end]) {
		c.Confirmed = c.Confirmed || isConfirmation(p.Lines[end])
		end++
	}
	for end > line && p.Lines[end-1] == "" {
		end--
	}
	c.Shown = p.Lines[line:end]
	return c
}

func isConfirmation(line string) bool { return strings.HasSuffix(line, "[y/N] y") }

// Confirm puts the line in which the command asks, and which --yes does not print, where the page has it: as many lines before
// the end.
func (c Command) Confirm(printed []string) []string {
	asked := slices.IndexFunc(c.Shown, isConfirmation)
	if asked < 0 {
		return printed
	}
	return slices.Insert(printed, max(0, len(printed)-(len(c.Shown)-1-asked)), c.Shown[asked])
}

// Replace puts other lines in the place of the outputs of commands, which are given by their index.
func (p *Page) Replace(outputs map[int][]string) error {
	lines := slices.Clone(p.Lines)
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(outputs))) {
		c := p.Commands[i]
		lines = slices.Replace(lines, c.Line, c.Line+len(c.Shown), outputs[i]...)
	}
	return os.WriteFile(p.Path, []byte(strings.Join(lines, "\n")), 0o644)
}

// Until are the commands before a heading, or all if there is no such heading.
func (p *Page) Until(heading string) []Command {
	end := slices.Index(p.Lines, heading)
	if heading == "" || end < 0 {
		return p.Commands
	}
	return slices.DeleteFunc(slices.Clone(p.Commands), func(c Command) bool { return c.Line > end })
}

// Section are the commands from a heading to the next one of any level.
func (p *Page) Section(heading string) []Command {
	from := slices.Index(p.Lines, heading) + 1
	to := from
	for to < len(p.Lines) && !strings.HasPrefix(p.Lines[to], "## ") && !strings.HasPrefix(p.Lines[to], "### ") {
		to++
	}
	return slices.DeleteFunc(slices.Clone(p.Commands), func(c Command) bool { return c.Line <= from || c.Line > to })
}

// whatever stands for one or more lines that the page leaves out.
const whatever = "..."

// varying is what differs between two runs of the same commands, and between two machines.
var varying = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{12,}\b`), "HASH"},
	{regexp.MustCompile(`\bmz[0-9a-z]{10}\b`), "mzID"},
	{regexp.MustCompile(`\bhub-[0-9a-f]{10}\b`), "hub-ID"},
	{regexp.MustCompile(`-[0-9a-z]{7,10}-[0-9a-z]{5}\b`), "-POD"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h|d)(\d+(\.\d+)?(s|m|h))*\b`), "DURATION"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d{5}\b`), "ADDRESS"},
	{regexp.MustCompile(`:3\d{4}/TCP\b`), ":PORT/TCP"},
	{regexp.MustCompile(`\s\d+\.\d+(e-\d+)?$`), " NUMBER"},
	{regexp.MustCompile(`\b\d+ calls\b`), "N calls"},
	{regexp.MustCompile(`\b(east|west) \d+\b`), "$1 N"},
}

// words are the words of an output without what varies. Where its lines are broken does not matter.
func words(output []string) string {
	var all []string
	for _, line := range output {
		for _, v := range varying {
			line = v.pattern.ReplaceAllString(line, v.name)
		}
		all = append(all, strings.Fields(line)...)
	}
	return strings.Join(all, " ")
}

// Matches tells whether a command printed what the page shows of it. What a watch prints on the way depends on how fast things
// were; of a watch, the exit code has to match, which is the last line.
func (c Command) Matches(printed []string) bool {
	if strings.Contains(c.Text, " watch ") {
		return !strings.HasSuffix(c.Text, "echo $?") || lastLine(printed) == lastLine(c.Shown)
	}
	return Match(c.Shown, printed)
}

var reading = regexp.MustCompile(`^((kubectl|east|west)( -n \S+)? (get|api-resources)|bin/fairlead (clusters|plan|status)|curl|grep|jq)\b`)

// Reads tells whether a command only reads. What it shows may be reported some time after the command before it.
func (c Command) Reads() bool { return reading.MatchString(c.Text) }

func lastLine(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// Match tells whether lines are those that a page shows, but for what varies and for what the page leaves out.
func Match(shown, printed []string) bool {
	var parts []string
	for len(shown) > 0 {
		end := slices.Index(shown, whatever)
		if end < 0 {
			end = len(shown)
		}
		parts = append(parts, regexp.QuoteMeta(words(shown[:end])))
		if end == len(shown) {
			break
		}
		if shown = shown[end+1:]; len(shown) == 0 {
			parts = append(parts, "")
		}
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(words(printed))
}
