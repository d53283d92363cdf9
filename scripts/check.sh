#!/usr/bin/env bash
# What CI runs (`make check`, .ci/run): every stage even when an earlier one failed, then a table of stages and times.
# At most 40 minutes from nothing on two cores. Exit 0 only when every stage passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$(nproc)
summary=()
failed=0

stage() { # stage NAME COMMAND...
  local name=$1 began=$SECONDS verdict=ok
  shift
  echo "== $name"
  "$@" || { verdict=FAILED; failed=$((failed + 1)); }
  summary+=("$(printf '%-34s %-6s %4d s' "$name" "$verdict" $((SECONDS - began)))")
  echo "== ${summary[-1]}"
}

layers() { python3 scripts/check_layers.py --self-test && python3 scripts/check_layers.py; }
docs() { python3 scripts/check_docs.py --self-test && python3 scripts/check_docs.py; }

# Warnings are errors here, and only here: a newer compiler than ours should still build the tree.
configure() { cmake --preset release -DHONE_WERROR=ON >/dev/null; }

# The folders from bytes in to engine out, and the hostile inputs, under AddressSanitizer and UBSan. The binaries run
# whole rather than case by case: a sanitized process is slow to start. An allocation that cannot be had returns null, as
# it does to a user. Use after return stays unchecked: g++ 12's fake stack does not keep the alignment of 64-byte vectors.
sanitized() {
  cmake --preset asan -DHONE_WERROR=OFF >/dev/null || return
  local targets=() folder
  for folder in base stats ir ops onnx optimize precision backends tune engine; do
    targets+=("hone_${folder}_test")
  done
  targets+=(hone_tests_errors hone_tests_issues)
  local known
  known=$(cmake --build build-asan --target help | sed -n 's/^\([a-z_]*\): phony$/\1/p')
  mapfile -t targets < <(printf '%s\n' "${targets[@]}" | grep -Fx -f <(echo "$known") || true)
  if ((${#targets[@]} == 0)); then echo "no test binary yet"; return 0; fi
  cmake --build build-asan --target "${targets[@]}" || return
  printf '%s\n' "${targets[@]}" | ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    xargs -P "$jobs" -I{} bash -c 'log=$(mktemp); trap "rm -f $log" EXIT
      build-asan/tests/{} --gtest_brief=1 --gtest_filter="-*Slow*:*Gpu*" >"$log" 2>&1; code=$?
      if ((code)); then tail -80 "$log"; echo "{}: exit $code"; else echo "{}: $(grep -a "PASSED" "$log" | tail -1)"; fi
      exit $code'
}

fuzz() {
  cmake --preset fuzz >/dev/null && cmake --build --preset fuzz || return
  local fuzzer name code=0
  for fuzzer in build-fuzz/fuzz/*; do
    [[ -x $fuzzer ]] || continue
    name=${fuzzer##*/}
    mkdir -p "build-fuzz/corpus/$name"
    local seeds=()
    [[ -d tests/fuzz/corpus/$name ]] && seeds=("tests/fuzz/corpus/$name")
    "$fuzzer" -max_total_time=60 -rss_limit_mb=2048 -timeout=20 -artifact_prefix=build-fuzz/ -print_final_stats=1 \
      "build-fuzz/corpus/$name" "${seeds[@]}" 2>&1 | tail -12 || code=1
  done
  return $code
}

# No device is needed to compile for one; cheap enough only for the architecture that is measured.
nvcc_only() { cmake --preset release -B build-cuda -DCMAKE_CUDA_ARCHITECTURES=90a-real -DHONE_CUDA=ON \
  -DHONE_TESTS=OFF >/dev/null && cmake --build build-cuda --target hone_backends; }

stage "set-up" bash scripts/setup.sh
stage "format" bash scripts/format.sh check
stage "layers" layers
stage "documentation" docs
stage "size" python3 scripts/size.py
stage "configure" configure
stage "build, warnings are errors" cmake --build build
stage "clang-tidy on changed files" python3 scripts/tidy.py --seconds 300
if [[ -f scripts/conformance.py ]]; then
  stage "ONNX conformance" .venv/bin/python scripts/conformance.py
fi
stage "ASan and UBSan, base to engine" sanitized
if compgen -G "tests/fuzz/*.cpp" >/dev/null; then stage "fuzzers, 60 s each" fuzz; fi
if [[ -d src/backends/cuda ]] && { command -v nvcc || [[ -x /usr/local/cuda/bin/nvcc ]]; } >/dev/null; then
  stage "nvcc for sm_90a" nvcc_only
fi
stage "tests" bash scripts/test.sh

printf '\n== stages\n'
printf '%s\n' "${summary[@]}"
echo "== all in $SECONDS s, $failed failed"
((failed == 0))
