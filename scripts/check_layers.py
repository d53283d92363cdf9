#!/usr/bin/env python3
"""Holds every #include to the house table, cmake/house.txt: check_layers.py [--self-test]

- src/<folder> includes its own folder, the folders its row names, and hone/ (the public headers). A project header is
  written from src/: "ops/problem.h", never "problem.h" or "../ops/problem.h", and never in angle brackets.
- include/hone includes hone/ and the standard library.
- cli, server and python include hone/ and their own files.
- Headers stay light: no nlohmann, CLI11, fmt or toml++ in a .h of src/ or include/.
- CUDA's headers appear in src/backends/cuda alone.
- A test beside its source obeys its folder's row, and may add support/; tests/ and bench/ may include anything.

--self-test plants a violation of each rule in a scratch tree and demands that each is found, and nothing else.
"""
import os
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CODE = (".h", ".cpp", ".cu", ".cuh", ".inc", ".inl", ".c", ".hpp")
CLIENTS = ("cli", "server", "python")
HEAVY = ("nlohmann/", "CLI/", "fmt/", "toml++/")
CUDA = ("cuda", "cublas", "cudnn", "nvrtc", "cooperative_groups", "mma.h")


def read_house(root):
    """{folder: set of folders it may include}, from cmake/house.txt. Raises ValueError on a row out of order."""
    house = {}
    with open(os.path.join(root, "cmake", "house.txt")) as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            folder, _, deps = line.partition(":")
            for dep in deps.split():
                if dep not in house:
                    raise ValueError(f"cmake/house.txt:{number}: {folder} names {dep}, which is not above it")
            house[folder.strip()] = set(deps.split())
    return house


def includes(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) == '"', match.group(2)


def why_not(root, house, name, quoted, target):
    """The reason the file `name` may not include `target`, or None when it may."""
    parts = name.split("/")
    top = target.split("/")[0]
    is_header = name.endswith((".h", ".hpp", ".cuh"))
    project = top in house and "/" in target

    if parts[0] in ("src", "include") and is_header and target.startswith(HEAVY):
        return "a header stays light: include it in the .cpp"
    if target.startswith(CUDA) and not name.startswith(("src/backends/cuda/", "bench/", "tests/")):
        return "CUDA's headers belong in src/backends/cuda"
    if project and not quoted:
        return f'a project header is written in quotes: "{target}"'

    if parts[0] == "include":
        if quoted and top != "hone":
            return "a public header includes hone/ and the standard library alone"
        if not quoted and ("/" in target or target.endswith(".h")):
            return "a public header includes hone/ and the standard library alone"
        return None
    if parts[0] in CLIENTS:
        if project and not os.path.exists(os.path.join(root, parts[0], target)):
            return "a client includes hone/ and its own files alone"
        if ".." in target.split("/"):
            return "a client includes hone/ and its own files alone"
        return None
    if parts[0] != "src" or len(parts) < 3:
        return None

    folder = parts[1]
    if folder not in house:
        return f"src/{folder} has no row in cmake/house.txt"
    if not quoted or top == "hone":
        return None
    if top == "support" and name.endswith("_test.cpp"):
        return None
    if not project:
        return f'a project header is written from src/: "{folder}/{target}"'
    if top != folder and top not in house[folder]:
        return f"{folder} may include {' '.join(sorted(house[folder])) or 'nothing'} (cmake/house.txt), not {top}"
    return None


def check(root):
    """Every violation below `root`, as "file:line: include: reason"."""
    house = read_house(root)
    found = []
    for top in ("src", "include") + CLIENTS:
        for directory, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for file in sorted(files):
                if not file.endswith(CODE):
                    continue
                path = os.path.join(directory, file)
                name = os.path.relpath(path, root).replace(os.sep, "/")
                for number, quoted, target in includes(path):
                    reason = why_not(root, house, name, quoted, target)
                    if reason:
                        found.append(f"{name}:{number}: {target}: {reason}")
    return found


def self_test():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmake", "house.txt")) as file:
        house = file.read()
    fine = {
        "src/base/a.cpp": '#include "base/a.h"\n#include <vector>\n#include <fmt/core.h>\n#include "hone/error.h"\n',
        "src/ops/b.h": '#include "base/a.h"\n#include "ops/ops.inc"\n',
        "src/ops/b_test.cpp": '#include "ir/g.h"\n#include "support/paths.h"\n#include <gtest/gtest.h>\n',
        "src/backends/cuda/x.cu": "#include <cuda_runtime.h>\n",
        "src/api/all.cpp": '#include "build/builder.h"\n#include "fidelity/bands.h"\n',
        "src/base/comment.cpp": '// #include "ops/b.h"\n',
        "include/hone/error.h": '#include <string>\n#include "hone/dtype.h"\n',
        "cli/main.cpp": '#include "hone/error.h"\n#include "options.h"\n#include <CLI/CLI.hpp>\n',
    }
    wrong = {
        "src/base/up.cpp": '#include "ir/g.h"\n',
        "src/stats/side.cpp": '#include "ir/g.h"\n',
        "src/optimize/up.inc": '#include "backends/tactic.h"\n',
        "src/backends/kernels/up.inl": '#include "tune/tuner.h"\n',
        "src/runtime/tuned_test.cpp": '#include "tune/tuner.h"\n',
        "src/ops/short.cpp": '#include "b.h"\n',
        "src/ops/dots.cpp": '#include "../ops/b.h"\n',
        "src/ops/angle.cpp": "#include <base/a.h>\n",
        "src/ops/heavy.h": "#include <nlohmann/json.hpp>\n",
        "src/ops/gpu.cpp": "#include <cuda_runtime.h>\n",
        "src/ops/shipped.cpp": '#include "support/paths.h"\n',
        "src/nowhere/x.cpp": '#include "base/a.h"\n',
        "include/hone/private.h": '#include "base/a.h"\n',
        "include/hone/system.h": "#include <sys/mman.h>\n",
        "cli/inside.cpp": '#include "ops/b.h"\n',
        "cli/around.cpp": '#include "../src/ops/b.h"\n',
        "server/inside.cpp": '#  include "base/a.h"\n',
        "python/inside.cpp": '#include "ir/g.h"\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**fine, **wrong, "cmake/house.txt": house}.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w") as file:
                file.write(text)
        found = {line.split(":")[0] for line in check(root)}
        missed = sorted(set(wrong) - found)
        false = sorted(found - set(wrong))
        with open(os.path.join(root, "cmake", "house.txt"), "w") as file:
            file.write("base: ir\nir: base\n")
        try:
            read_house(root)
            missed.append("a house.txt with a cycle")
        except ValueError:
            pass
    for name in missed:
        print(f"check_layers: self-test: not found: {name}", file=sys.stderr)
    for name in false:
        print(f"check_layers: self-test: wrongly found: {name}", file=sys.stderr)
    if missed or false:
        return 1
    print(f"check_layers: self-test passed: {len(wrong) + 1} planted violations found, {len(fine)} good files left alone")
    return 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    found = check(os.path.normpath(root))
    for line in found:
        print(line, file=sys.stderr)
    print(f"check_layers: {len(found)} violations" if found else "check_layers: every include obeys cmake/house.txt")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
