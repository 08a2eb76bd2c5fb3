// Command fairlead is the operator and the command line.
package main

import (
	"os"

	"github.com/fairlead/fairlead/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.Streams{Out: os.Stdout, Err: os.Stderr}, os.Args[1:]))
}
