#!/usr/bin/env bash
# Looks for known vulnerabilities in what both modules call: vuln.sh GOVULNCHECK VERSION, which is installed there if it is not. Where its module or the
# vulnerability database cannot be reached, it says so and is fine.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -x "$1" ]; then
  if ! said=$(GOBIN="$(dirname "$1")" go install "golang.org/x/vuln/cmd/govulncheck@$2" 2>&1); then
    echo "govulncheck was not run: it could not be installed: $(tail -n 1 <<<"$said")" >&2
    exit 0
  fi
  mv "$(dirname "$1")/govulncheck" "$1"
fi
if ! said=$("$1" -mode=query -format=json stdlib@v1.26.0 2>&1); then
  echo "govulncheck was not run: its database cannot be reached: $(tail -n 1 <<<"$said")" >&2
  exit 0
fi
"$1" ./...
cd test && "$1" -tags disable_grpc_modules ./...
