// Command vulncheck runs govulncheck where the vulnerability database can be reached, and says so where it cannot.
//
//	vulncheck [-required] PACKAGE...
//
// The variable GOVULNDB names another database, an https or file URL; with GOVULNDB=off or GOPROXY=off nobody is asked. What was found
// to be fine is not looked at again before the code or the database changes.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	defaultDatabase = "https://vuln.go.dev"
	// reachTimeout is how long a machine without a network waits.
	reachTimeout = 3 * time.Second
	stamp        = "bin/vulncheck.stamp"
)

func main() {
	required := flag.Bool("required", false, "fail if the database cannot be reached")
	flag.Parse()
	if err := run(*required, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(required bool, packages []string) error {
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = defaultDatabase
	}
	version, err := reach(database, os.Getenv("GOPROXY"))
	if err != nil && !required {
		fmt.Printf("govulncheck skipped: %v; to run it: make vulncheck, or with a copy of the database: make vulncheck GOVULNDB=file:///DIR\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	code, err := digest(version)
	if err != nil {
		return err
	}
	if before, err := os.ReadFile(stamp); err == nil && string(before) == code {
		fmt.Println("govulncheck: no known vulnerabilities; neither the code nor the database has changed since")
		return nil
	}
	check := exec.Command("go", append([]string{"tool", "-modfile=tools/go.mod", "govulncheck", "-db", database}, packages...)...)
	check.Stdout, check.Stderr = os.Stdout, os.Stderr
	if err := check.Run(); err != nil {
		return fmt.Errorf("govulncheck: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(stamp), 0o755); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(code), 0o644)
}

// reach returns what identifies the version of a database, or why the database cannot be reached. It dials nobody where that is known.
func reach(database, proxy string) ([]byte, error) {
	switch {
	case database == "off":
		return nil, errors.New("GOVULNDB is off")
	case proxy == "off" && !strings.HasPrefix(database, "file:"):
		return nil, errors.New("GOPROXY is off, so the vulnerability database is not asked for either")
	}
	where, err := url.Parse(database)
	if err != nil {
		return nil, fmt.Errorf("GOVULNDB: %w", err)
	}
	if where.Scheme == "file" {
		version, err := os.ReadFile(filepath.Join(filepath.FromSlash(where.Path), "index", "db.json"))
		if err != nil {
			return nil, fmt.Errorf("there is no vulnerability database at %s: %w", database, err)
		}
		return version, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.JoinPath("index", "db.json").String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("GOVULNDB: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the vulnerability database cannot be reached: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the vulnerability database %s answers %s", database, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, 1<<20))
}

// digest is that of a version of the database, of Go, and of what is in the tree.
func digest(version []byte) (string, error) {
	sum := sha256.New()
	sum.Write(version)
	goVersion, err := exec.Command("go", "version").Output()
	if err != nil {
		return "", err
	}
	sum.Write(goVersion)
	files, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "-z", "*.go", "*go.mod", "*go.sum").Output()
	if err != nil {
		return "", fmt.Errorf("list the files of the tree: %w", err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", file, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
