#!/usr/bin/env python3
"""How big the repository is, and whether a file is too big: size.py [--self-test]

Fails on a tracked file of 24 MiB or more and on a source file of more than 700 lines (the ceiling; near 400 is the
aim, so the longest are listed). Prints lines of code and of tests per folder.
"""
import os
import subprocess
import sys

MAX_BYTES = 24 << 20
MAX_LINES = 700
AIM_LINES = 400
SOURCE = (".cpp", ".h", ".inl", ".cu", ".cuh", ".py", ".sh", ".cmake")


def judge(sizes):
    """sizes: {name: (bytes, lines or None)}. Returns the list of complaints."""
    bad = []
    for name, (size, lines) in sorted(sizes.items()):
        if size >= MAX_BYTES:
            bad.append(f"{name}: {size / (1 << 20):.1f} MiB; a tracked file stays under {MAX_BYTES >> 20} MiB")
        if lines is not None and lines > MAX_LINES:
            bad.append(f"{name}: {lines} lines; the ceiling is {MAX_LINES}: split it by what it does")
    return bad


def folder_of(name):
    parts = name.split("/")
    return "/".join(parts[: 2 if parts[0] in ("src", "tests") and len(parts) > 2 else 1]) if len(parts) > 1 else "."


def tracked_sizes():
    names = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True).stdout.decode().split("\0")
    sizes = {}
    for name in filter(os.path.isfile, names):
        lines = None
        if name.endswith(SOURCE):
            with open(name, "rb") as file:
                lines = file.read().count(b"\n")
        sizes[name] = (os.path.getsize(name), lines)
    return sizes


def report(sizes):
    rows = {}
    for name, (_, lines) in sizes.items():
        if lines is None:
            continue
        row = rows.setdefault(folder_of(name), [0, 0, 0])
        row[0] += 1
        row[2 if name.endswith("_test.cpp") or name.startswith("tests/") else 1] += lines
    print(f"{'folder':<16}{'files':>7}{'code':>9}{'tests':>9}")
    for folder, (files, code, tests) in sorted(rows.items()):
        print(f"{folder:<16}{files:>7}{code:>9}{tests:>9}")
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    print(f"{'all':<16}{total[0]:>7}{total[1]:>9}{total[2]:>9}")
    longest = sorted(((lines, name) for name, (_, lines) in sizes.items() if lines and lines > AIM_LINES), reverse=True)
    if longest:
        print(f"over {AIM_LINES} lines: " + ", ".join(f"{name} {lines}" for lines, name in longest[:12]))
    print(f"tracked files: {len(sizes)}, {sum(size for size, _ in sizes.values()) / (1 << 20):.1f} MiB")


def self_test():
    assert judge({"a.onnx": (MAX_BYTES - 1, None), "b.cpp": (10, MAX_LINES)}) == []
    assert len(judge({"a.onnx": (MAX_BYTES, None)})) == 1
    assert len(judge({"b.cpp": (10, MAX_LINES + 1)})) == 1
    assert folder_of("src/ops/x.cpp") == "src/ops" and folder_of("cli/main.cpp") == "cli" and folder_of("a.txt") == "."
    print("size: self-test passed")


def main():
    if "--self-test" in sys.argv:
        self_test()
        return 0
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sizes = tracked_sizes()
    report(sizes)
    bad = judge(sizes)
    for line in bad:
        print("size: " + line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
