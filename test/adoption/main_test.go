// Package adoption_test takes over what runs in clusters, through the API and the binaries only.
package adoption_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }
