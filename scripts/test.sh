#!/usr/bin/env bash
# Sets up, builds and runs the tests: all but those labelled slow, gpu or fuzz, then a sample of ONNX conformance.
# Arguments go to ctest: bash scripts/test.sh -R Problem
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh --no-check
bash scripts/build.sh
# The cases drawn change with the commit, and are the same for everyone who tests that commit.
if [[ -f scripts/conformance.py && $# -eq 0 ]]; then
  .venv/bin/python scripts/conformance.py --sample 200 --seed "$(git rev-parse HEAD 2>/dev/null || echo 0)"
fi
ctest --test-dir build --no-tests=error --output-on-failure -j "$(nproc)" -LE 'slow|gpu|fuzz' "$@"
