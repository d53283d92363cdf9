#!/usr/bin/env bash
# Sets up, builds, and runs the demo (demo/run_demo.py): a real model checked, compiled, run and compared with the original.
# Arguments go to the demo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh --no-check
bash scripts/build.sh hone
exec .venv/bin/python demo/run_demo.py "$@"
