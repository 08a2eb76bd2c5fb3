package supervisor

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// birthTolerance in milliseconds: births are told relative to the boot, which
// moves a little when the clock is set.
const birthTolerance = 2000

// createdAt is when a process began; with its pid it names that process and no
// later one. One that has ended has no birth, even if nobody has noticed its end.
func createdAt(pid int32) int64 {
	p, err := process.NewProcess(pid)
	if err != nil {
		return 0
	}
	created, err := p.CreateTime()
	if err != nil {
		return 0
	}
	if status, err := p.Status(); err == nil && slices.Contains(status, process.Zombie) {
		return 0
	}
	return created
}

// sameBirth tells whether two readings can be of one process; a process that is not there has none.
func sameBirth(a, b int64) bool {
	return a != 0 && b != 0 && max(a-b, b-a) <= birthTolerance
}

// isOurs tells whether the recorded process still lives and is the one that
// this directory started: same pid, same birth, and the directory in its arguments.
func isOurs(dir clusterdir.Dir, r clusterdir.Record) bool {
	if r.PID == 0 || r.State != clusterdir.Running {
		return false
	}
	p, err := process.NewProcess(r.PID)
	if err != nil || !sameBirth(createdAt(r.PID), r.Created) {
		return false
	}
	args, err := p.CmdlineSlice()
	return err == nil && slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, string(dir)) })
}

// Alive tells whether there is such a process.
func Alive(pid int32) bool { return createdAt(pid) != 0 }

// EndLeftovers waits for the processes of a supervisor that is gone, which end
// by themselves, and ends those that have not within the grace. Records that
// cannot be read name nobody, and keep nobody from starting anew.
func EndLeftovers(dir clusterdir.Dir, grace time.Duration) {
	records, _ := dir.LoadRecords()
	deadline := time.Now().Add(grace)
	for _, r := range records {
		for isOurs(dir, r) {
			if time.Now().After(deadline) {
				_ = syscall.Kill(int(r.PID), syscall.SIGKILL)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func killIfOurs(dir clusterdir.Dir, name string) {
	records, _ := dir.LoadRecords()
	for _, r := range records {
		if r.Name == name && isOurs(dir, r) {
			_ = syscall.Kill(int(r.PID), syscall.SIGKILL)
		}
	}
}
