#!/usr/bin/env bash
# Runs every fuzz target for a time, one after the other: hack/fuzz.sh TIME [REGEXP of targets]. What fails is in testdata/fuzz of the
# package, from where every `go test` runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m} only=${2:-.}

targets=$(git ls-files -co --exclude-standard '*_test.go' \
  | xargs grep -HoE '^func Fuzz[A-Za-z0-9]*' | sed 's/:func /:/' | sort)
failed=0
while IFS=: read -r file target; do
  [[ $target =~ $only ]] || continue
  began=$SECONDS
  if out=$(go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x -parallel "${FUZZ_PARALLEL:-1}" "./$(dirname "$file")" 2>&1); then
    result=ok
  else
    result=FAILED failed=1
  fi
  printf '%-24s %-44s %8s executions  %4d s  %s\n' "$target" "$(dirname "$file")" \
    "$(grep -oE 'execs: [0-9]+' <<<"$out" | tail -1 | cut -d' ' -f2)" $((SECONDS - began)) "$result"
  [ "$result" = ok ] || printf '%s\n' "$out" | tail -30
done <<<"$targets"
exit $failed
