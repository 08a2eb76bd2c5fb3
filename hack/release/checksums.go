package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const checksumsFile = "checksums.txt"

// writeChecksums lists every file of dist/ as `sha256sum -c` reads it.
func writeChecksums(dist string) error {
	var list strings.Builder
	err := filepath.WalkDir(dist, func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		sum, err := sha256File(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dist, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(&list, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return fmt.Errorf("compute checksums: %w", err)
	}
	return os.WriteFile(filepath.Join(dist, checksumsFile), []byte(list.String()), 0o644)
}

func sha256File(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// keyOf names the file of a key so that cosign finds it from dist/. A key may also be a URL, of a service that keeps it.
func keyOf(root, key string) string {
	if file := filepath.Join(root, key); key != "" && !filepath.IsAbs(key) {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return key
}

// sign has cosign sign the checksums, and by them everything else.
func sign(ctx context.Context, out io.Writer, dist, key string) error {
	if key == "" {
		fmt.Fprintln(out, "not signed: COSIGN_KEY names no key")
		return nil
	}
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		fmt.Fprintf(out, "not signed: COSIGN_KEY names a key, and there is no cosign in PATH: %v\n", err)
		return nil
	}
	command := exec.CommandContext(ctx, cosign, "sign-blob", "--yes", "--key", key, "--bundle", checksumsFile+".bundle", checksumsFile)
	command.Dir = dist
	if printed, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("sign %s: %w\n%s", checksumsFile, err, printed)
	}
	fmt.Fprintf(out, "signed %s: %s.bundle\n", checksumsFile, checksumsFile)
	return nil
}
