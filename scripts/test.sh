#!/usr/bin/env bash
# Sets up, builds and runs the tests: a sample of ONNX conformance, three whole models, and every test case but those
# labelled slow, gpu or fuzz.
# Arguments go to ctest: bash scripts/test.sh -R Problem
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh --no-check
bash scripts/build.sh
status=0
if (($# == 0)); then
  # The cases drawn change with the commit, and are the same for everyone who tests that commit.
  if [[ -f scripts/conformance.py ]]; then
    .venv/bin/python scripts/conformance.py --sample 200 --seed "$(git rev-parse HEAD 2>/dev/null || echo 0)" || status=1
  fi
  # Three whole models against ONNX Runtime: a residual network, a mobile one and a transformer.
  if [[ -f scripts/compare_graphs.py ]]; then
    .venv/bin/python scripts/compare_graphs.py resnet18.dynamo mobilenet_v2.script electra_small.dynamo || status=1
  fi
fi
ctest --test-dir build --no-tests=error --output-on-failure -j "$(nproc)" -LE 'slow|gpu|fuzz' "$@" || status=1
if ((status)); then echo "test: failed; see above" >&2; fi
exit $status
