package callers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// ErrNoNode says that there is no Node on this machine, so that nobody can call with it.
var ErrNoNode = errors.New("there is no node and npm in PATH")

// InstallNode puts the caller for Node with its libraries into a directory, unless they are there, given where its sources
// are.
func InstallNode(sources, directory string) error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return ErrNoNode
		}
	}
	changed := false
	for _, name := range []string{"package.json", "package-lock.json", "caller.js"} {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			return fmt.Errorf("read the caller for Node: %w", err)
		}
		to := filepath.Join(directory, name)
		if there, err := os.ReadFile(to); err == nil && string(there) == string(text) {
			continue
		}
		changed = true
		if err := errors.Join(os.MkdirAll(directory, 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			return fmt.Errorf("copy the caller for Node: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(directory, "node_modules", ".package-lock.json")); err == nil && !changed {
		return nil
	}
	npm := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = directory
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("install the libraries of the caller for Node: %w: %s", err, output)
	}
	return nil
}

// NodeCaller calls on and on from Node, whose gRPC is another implementation.
type NodeCaller struct {
	command *exec.Cmd
	input   io.Closer
	ended   chan struct{}

	mu    sync.Mutex
	tally Tally
}

// StartNode calls a target so many times a second until Stop, from where InstallNode has put the caller.
func StartNode(directory, target string, bootstrap Bootstrap, rate int) (*NodeCaller, error) {
	command := exec.Command("node", "caller.js", target, strconv.Itoa(rate))
	command.Dir = directory
	command.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP_CONFIG="+string(bootstrap.JSON()))
	c := &NodeCaller{command: command, ended: make(chan struct{}), tally: Tally{Answered: map[string]int{}}}
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.input = input
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the caller for Node: %w", err)
	}
	go c.read(output)
	return c, nil
}

func (c *NodeCaller) read(output io.Reader) {
	defer close(c.ended)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var said struct {
			Answered   map[string]int `json:"answered"`
			Failed     int            `json:"failed"`
			FirstError string         `json:"firstError"`
		}
		if json.Unmarshal(lines.Bytes(), &said) == nil {
			c.mu.Lock()
			c.tally = Tally(said)
			c.mu.Unlock()
		}
	}
}

// Tally is what has become of the calls until a second ago. It is not to be changed.
func (c *NodeCaller) Tally() Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally
}

// Stop ends the calls.
func (c *NodeCaller) Stop() (Tally, error) {
	_ = c.input.Close()
	<-c.ended
	err := c.command.Wait()
	return c.Tally(), err
}
