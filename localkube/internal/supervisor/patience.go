package supervisor

import (
	"os"
	"strconv"
	"time"
)

// Patient is how long to wait for what takes no longer than so long on any usual machine. On one that is slower still,
// FAIRLEAD_PATIENCE=3 multiplies it by 3.
func Patient(usually time.Duration) time.Duration {
	factor, err := strconv.ParseFloat(os.Getenv("FAIRLEAD_PATIENCE"), 64)
	if err != nil || factor < 1 {
		return usually
	}
	return time.Duration(factor * float64(usually))
}
