package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// releaseVersion is a version with its v, such as v0.1.0.
type releaseVersion string

func (v releaseVersion) number() string { return strings.TrimPrefix(string(v), "v") }

// parseVersion takes no build metadata: neither the tag of an image nor the label of a chart can hold its plus sign.
func parseVersion(text string) (releaseVersion, error) {
	number, prefixed := strings.CutPrefix(text, "v")
	parsed, err := semver.StrictNewVersion(number)
	if !prefixed || err != nil || parsed.Metadata() != "" {
		return "", fmt.Errorf("%q is not the version of a release: name one such as v0.1.0 or v0.1.0-rc.1, as in `make release VERSION=v0.1.0`", text)
	}
	return releaseVersion(text), nil
}

// source is the commit that is released. Its time is the time of every file, so that a second build gives the same bytes.
type source struct {
	commit string
	time   time.Time
}

// readSource refuses a tree that differs from its commit: nobody could build the same from the commit.
func readSource(ctx context.Context, root, epoch string) (source, error) {
	changed, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	if changed != "" {
		return source{}, fmt.Errorf("%s has changes that are not committed: commit or remove them, so that others can build the same release\n%s", root, changed)
	}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return source{}, err
	}
	if epoch == "" {
		if epoch, err = git(ctx, root, "log", "-1", "--format=%ct"); err != nil {
			return source{}, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
	}
	return source{commit: commit, time: time.Unix(seconds, 0).UTC()}, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w", strings.Join(args, " "), dir, withStderr(err))
	}
	return strings.TrimSpace(string(printed)), nil
}

func withStderr(err error) error {
	if exit, ok := err.(*exec.ExitError); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
