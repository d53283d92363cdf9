#!/usr/bin/env bash
# clang-format over files changed since the merge base: format.sh check | fix [FILE...]
# check names each file that differs and shows how; fix rewrites it. With files given: those, changed or not.
set -euo pipefail
mode=${1:-check}
shift || true
if (($#)); then files=("$@"); else
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  mapfile -t files < <(python3 scripts/changed.py .cpp .h .inl .cu .cuh)
fi
((${#files[@]})) && [[ -n "${files[0]}" ]] || { echo "format: no C++ file changed"; exit 0; }
command -v clang-format-16 >/dev/null || { echo "format: clang-format-16 is not installed; run scripts/setup.sh" >&2; exit 2; }
if [[ $mode == fix ]]; then
  clang-format-16 -i "${files[@]}"
else
  bad=0
  diff=$(mktemp)
  trap 'rm -f "$diff"' EXIT
  for file in "${files[@]}"; do
    if ! diff -u --label "$file" --label "$file (formatted)" "$file" <(clang-format-16 "$file") >"$diff"; then
      bad=$((bad + 1))
      if ((bad <= 5)); then head -20 "$diff"; else echo "$file"; fi
    fi
  done
  if ((bad)); then echo "format: $bad of ${#files[@]} files differ from .clang-format; 'make fix' mends them" >&2; exit 1; fi
  echo "format: ${#files[@]} files"
fi
