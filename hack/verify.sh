#!/usr/bin/env bash
# Fails when what is in the tree differs from what the generators make of it.
# It works on a copy, so that the tree is left as it was.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -co --exclude-standard -z \
  | while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done \
  | tar --null -T - -cf - | tar -xf - -C "$copy"

cd "$copy"
git init -q
git add -A
make --no-print-directory -s generated
if [ -n "$(git status --porcelain | grep -v '^A ' || true)" ]; then
  git --no-pager diff
  echo "generated files differ from what is committed: run \`make generate\` and commit the result" >&2
  exit 1
fi
