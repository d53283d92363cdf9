#!/usr/bin/env bash
# Configures build/ as Release when it is new and builds TARGET (default: everything there). Installs nothing.
#   bash scripts/build.sh [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ! -f build/build.ninja ]]; then
  log=$(mktemp)
  cmake --preset release >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
  grep -- '-- CUDA backend' "$log" || true
  rm -f "$log"
fi
cmake --build build ${1:+--target "$@"}
