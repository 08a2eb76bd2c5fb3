// Command test runs go test and prints a line for each package as it ends, then `N passed, N failed, N skipped`.
//
//	test [-report] [-load N] [-repeat N] -- [-C DIR] ARGUMENTS OF GO TEST [-- [-C DIR] ARGUMENTS OF GO TEST]...
//
// A failed test shows its message; all that a package printed is in bin/logs. With -report, the slowest packages and tests
// follow, with the processor time of everything that a package started. With -repeat and -load it runs the tests several
// times while busy loops take the processor, and tells how often each package was red.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/fairlead/fairlead/hack/internal/arguments"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == measureArgument {
		os.Exit(measure(os.Args[2:]))
	}
	var o options
	flag.BoolVar(&o.report, "report", false, "run everything again, and print the slowest packages and tests")
	flag.IntVar(&o.load, "load", 0, "busy loops that take the processor meanwhile")
	flag.IntVar(&o.repeat, "repeat", 1, "how often to run")
	flag.Parse()
	red, err := run(o, arguments.Split(flag.Args()))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if red || err != nil {
		os.Exit(1)
	}
}

type options struct {
	report       bool
	load, repeat int
}

func run(o options, invocations [][]string) (red bool, err error) {
	logs := filepath.Join("bin", "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return true, err
	}
	if logs, err = filepath.Abs(logs); err != nil {
		return true, err
	}
	burn(o.load)
	began := time.Now()
	all := newResults(os.Stdout, logs)
	for all.run = range o.repeat {
		for _, args := range invocations {
			if err := goTest(args, o, all); err != nil {
				return true, err
			}
		}
	}
	if o.report {
		all.writeSlowest(os.Stdout)
	}
	if o.repeat > 1 {
		all.writeRuns(os.Stdout, o)
	}
	all.writeTotal(os.Stdout, time.Since(began))
	if len(all.ended) > 0 && all.total("pass")+all.failed()+all.total("skip") == 0 {
		return true, errors.New("no test has this name")
	}
	return all.failed() > 0, nil
}

// burn keeps so many threads busy until the process ends.
func burn(loops int) {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + loops)
	for range loops {
		go func() {
			runtime.LockOSThread()
			//lint:ignore SA5002 it is meant to take the processor
			for {
			}
		}()
	}
}
