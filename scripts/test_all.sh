#!/usr/bin/env bash
# What `make test` leaves out: slow tests, every graph and zoo model, all of ONNX conformance, each ISA level in turn,
# ThreadSanitizer. Up to three hours on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh --no-check
bash scripts/build.sh
jobs=$(nproc)
for isa in portable avx2 avx512; do
  # A level above the machine's is lowered to what it has, so the loop repeats rather than fails there.
  echo "== every test at HONE_ISA=$isa"
  HONE_ISA=$isa ctest --test-dir build --no-tests=error --output-on-failure -j "$jobs" -LE 'slow|gpu|fuzz'
done
if [[ -f scripts/conformance.py ]]; then
  echo "== ONNX conformance"
  .venv/bin/python scripts/conformance.py
fi
echo "== every graph, the zoo and the demo's model against ONNX Runtime"
.venv/bin/python scripts/compare_graphs.py --set all
echo "== ThreadSanitizer"
cmake --preset tsan >/dev/null
cmake --build build-tsan
ctest --test-dir build-tsan --no-tests=error --output-on-failure -j "$jobs" -LE 'slow|gpu|fuzz'
echo "== slow tests, one at a time"
ctest --test-dir build --output-on-failure -L 'slow|gpu'
