package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// Client talks to the supervisor of one directory.
type Client struct {
	dir  clusterdir.Dir
	http http.Client
}

// NewClient works in the directory from here on: sockets are named relative to it.
func NewClient(dir clusterdir.Dir) *Client {
	c := &Client{dir: dir}
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := os.Chdir(string(dir)); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", clusterdir.ControlSocket)
	}}
	return c
}

// Running tells whether the supervisor lives: it holds a lock for as long as it
// does. To look takes a shared lock, so that two who look do not see each other.
func (c *Client) Running() bool {
	if !c.dir.Exists() {
		return false
	}
	lock := flock.New(c.dir.Lock())
	held, err := lock.TryRLock()
	if held {
		_ = lock.Close()
	}
	return err == nil && !held
}

// Status of every process, from the supervisor that runs the cluster, if one
// does. One that is just coming or going is waited for.
func (c *Client) Status(ctx context.Context) (records []clusterdir.Record, running bool, err error) {
	deadline := time.After(Patient(30 * time.Second))
	for c.Running() {
		if records, err := c.records(ctx); err == nil {
			return records, true, nil
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-deadline:
			return nil, false, fmt.Errorf("localkube holds the cluster in %s but does not answer: `localkube down --dir %s` ends it; its log is %s",
				c.dir, c.dir, c.dir.Log(Self))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, false, nil
}

// Launch starts the supervisor in the background, its output in a log, and
// returns when it answers.
func (c *Client) Launch(ctx context.Context, until int32) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path := c.dir.Log(Self)
	log, err := openLog(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}

	cmd := exec.Command(self, "supervise", "--dir", string(c.dir), fmt.Sprintf("--until=%d", until))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // outlives the terminal
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start localkube in the background: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()

	deadline := time.After(Patient(2 * time.Minute))
	for {
		if _, err := c.records(ctx); err == nil {
			return nil
		}
		select {
		case <-ended:
			// Another one may have been quicker.
			if _, err := c.records(ctx); err == nil {
				return nil
			}
			return errors.New(strings.TrimSpace(strings.TrimPrefix(since(path, before), "error: ")))
		case <-deadline:
			return fmt.Errorf("localkube does not answer; its log is %s", path)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func since(path string, offset int64) string {
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) <= offset {
		return fmt.Sprintf("localkube ended without a word; its log is %s", path)
	}
	return string(data[offset:])
}

// Start brings up what is not, telling each step.
func (c *Client) Start(ctx context.Context, progress Progress) error {
	response, err := c.do(ctx, http.MethodPost, pathStart, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for decoder := json.NewDecoder(response.Body); ; {
		var m message
		if err := decoder.Decode(&m); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted while starting the cluster: %w", ctx.Err())
			}
			return fmt.Errorf("localkube ended while it was starting the cluster; its log is %s", c.dir.Log(Self))
		}
		switch {
		case m.Done:
			return nil
		case m.Error != "":
			return errors.New(m.Error)
		case m.Doing != "":
			progress.Doing(m.Doing)
		default:
			progress.Done(m.Step)
		}
	}
}

// stopPatience with a supervisor that was asked to stop: longer than it gives
// its processes in all, and short enough that nothing is left after 10 seconds.
const stopPatience = 7 * time.Second

// Stop ends the cluster and returns when nothing of it is left. A supervisor
// that does not do as it is asked is ended too: its processes end with it.
func (c *Client) Stop(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	_ = c.call(asked, http.MethodPost, pathStop, nil, nil)
	for c.Running() {
		if asked.Err() != nil {
			killIfOurs(c.dir, Self)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("localkube has not stopped: %w; its log is %s", ctx.Err(), c.dir.Log(Self))
		case <-time.After(20 * time.Millisecond):
		}
	}
	EndLeftovers(c.dir, 2*time.Second)
	return c.recordStop()
}

// recordStop says of every process that it was stopped: a supervisor that had to be ended could not. Records
// of a supervisor that was started meanwhile are left alone.
func (c *Client) recordStop() error {
	if !c.dir.Exists() {
		return nil
	}
	lock := flock.New(c.dir.Lock())
	if held, err := lock.TryLock(); err != nil || !held {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	records, err := c.dir.LoadRecords()
	if err != nil || len(records) == 0 {
		return nil // what cannot be read says of none that it runs
	}
	for i := range records {
		records[i].State, records[i].Detail = clusterdir.Stopped, ""
	}
	return c.dir.SaveRecords(records)
}

func (c *Client) records(ctx context.Context) (records []clusterdir.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = c.call(ctx, http.MethodGet, pathStatus, nil, &records)
	return records, err
}

// Serve puts a local process behind a Service port; an empty To takes it away.
func (c *Client) Serve(ctx context.Context, s clusterdir.Serve) error {
	return c.call(ctx, http.MethodPut, pathServe, s, nil)
}

// Istiod asks for a revision's control plane; a dead one is started again.
func (c *Client) Istiod(ctx context.Context, i clusterdir.Istiod) (state IstiodState, err error) {
	err = c.call(ctx, http.MethodPut, pathIstiod, i, &state)
	return state, err
}

// IstiodState tells how far a revision's control plane is.
func (c *Client) IstiodState(ctx context.Context, revision string) (state IstiodState, err error) {
	err = c.call(ctx, http.MethodGet, pathIstiod+"/"+url.PathEscape(revision), nil, &state)
	return state, err
}

// call sends a request, and reads the answer into a value unless it is nil.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://localkube"+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("the cluster in %s is not running: `localkube up --dir %s` starts it", c.dir, c.dir)
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	return response, nil
}
