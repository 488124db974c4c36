#!/usr/bin/env bash
# Builds a program and says how far it is, since a first build takes minutes: build.sh OUTPUT PACKAGE [flags of go build]
set -euo pipefail
output=$1 package=$2
shift 2
packages=$(go list "$@" -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$package" | grep -c . || true)
many=100
if [ "$packages" -gt "$many" ]; then
  echo "Building $(basename "$output"): $packages packages. The next build takes seconds."
fi
go build "$@" -v -o "$output" "$package" 2>&1 | awk -v all="$packages" -v many="$many" '
  /^[^ ]+$/ { done++; if (all > many && done % many == 0) { printf "  %d of %d packages\n", done, all; fflush() } next }
  { print; fflush() }'
