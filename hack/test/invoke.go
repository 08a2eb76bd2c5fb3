package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// event is a line of `go test -json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of the output of a build
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// goTest runs go test once, and adds what becomes of its packages to the results.
func goTest(args []string, o options, all *results) error {
	command := []string{"test", "-json"}
	if len(args) > 1 && args[0] == "-C" {
		command, args = []string{"-C", args[1], "test", "-json"}, args[2:]
	}
	if o.load > 0 { // what is cached was not under load
		command = append(command, "-count=1")
	}
	if o.report || o.repeat > 1 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command = append(command, "-count=1", "-exec", self+" "+measureArgument)
	}
	cmd := exec.Command("go", append(command, args...)...)
	cmd.Stderr = &quiet{out: os.Stderr}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case now := <-tick.C:
				all.printProgress(now)
			case <-ended:
				tick.Stop()
				return
			}
		}
	}()
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if !strings.HasPrefix(lines.Text(), "{") || json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		all.add(e)
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	var exit *exec.ExitError
	if errors.As(err, &exit) && all.failed() > 0 {
		return nil // what failed has been told
	}
	return err
}

// quiet leaves out what go says about the modules that it downloads.
type quiet struct {
	out  io.Writer
	line []byte // without its end
}

func (q *quiet) Write(text []byte) (int, error) {
	q.line = append(q.line, text...)
	for {
		line, rest, whole := bytes.Cut(q.line, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if !bytes.HasPrefix(line, []byte("go: downloading ")) {
			if _, err := fmt.Fprintf(q.out, "%s\n", line); err != nil {
				return 0, err
			}
		}
		q.line = rest
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
