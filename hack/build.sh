#!/usr/bin/env bash
# Builds a program of the module in a directory: build.sh OUTPUT MODULE [FLAGS] PACKAGE.
# One that did not change keeps its time, by which Go tells whether the tests that run it have to run again.
set -euo pipefail
output=$PWD/$1
cd "$2"
shift 2
before=$(go tool buildid "$output" 2>/dev/null || true)
time=$(mktemp)
trap 'rm -f "$time"' EXIT
if [ -n "$before" ]; then touch -r "$output" "$time"; fi
(set -x; go build -o "$output" "$@")
if [ "$before" = "$(go tool buildid "$output")" ]; then touch -r "$time" "$output"; fi
