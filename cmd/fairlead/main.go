// Command fairlead is the operator and the command line.
package main

import (
	"os"

	"github.com/fairlead/fairlead/internal/cli"
)

func main() {
	os.Exit(cli.MainAs(os.Args[0], cli.Streams{Out: os.Stdout, Err: os.Stderr}, os.Args[1:]))
}
