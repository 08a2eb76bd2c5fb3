#!/usr/bin/env bash
# Runs the tests of the packages given, and says at the end which ones failed: the log of an operator can be long.
# Go remembers what passed until the code changes, or a file or a binary that a test looks at; -count=1 has it forget.
set -euo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -timeout 60m "$@" 2>&1 | tee "$log" && exit
printf '\nThese failed:\n'
grep -E '^ *--- FAIL|^FAIL.+|^panic:' "$log" || true
exit 1
