#!/usr/bin/env python3
"""clang-tidy 16 on translation units changed since the merge base: tidy.py [--max N] [--seconds S] [FILE...]

At most N of them (12), chosen by a hash of commit and path, so that over several commits every file has its turn, and
at most S seconds (600) in all; what was left out is said. A changed header is seen through its own .cpp or _test.cpp.
Needs build/compile_commands.json. Exit 1 when a check fires, unless the change is so large (more than 80 units: an
import, a reformatting) that the sample says little about who wrote what: then findings are shown and the exit is 0.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time

from changed import changed_files, git


def candidates(compiled):
    chosen = set()
    for name in changed_files((".cpp", ".h")):
        stem = name.rsplit(".", 1)[0]
        for unit in (name, stem + ".cpp", stem + "_test.cpp"):
            if unit in compiled:
                chosen.add(unit)
                break
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--build", default="build")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

    with open(os.path.join(args.build, "compile_commands.json")) as commands:
        compiled = {os.path.relpath(row["file"]) for row in json.load(commands)}
    head = git("rev-parse", "HEAD")
    files = args.files or sorted(
        candidates(compiled), key=lambda name: hashlib.sha256((head + name).encode()).digest()
    )
    judged = bool(args.files) or len(files) <= 80
    late = files[args.max :] if not args.files else []
    files = files[: len(files) - len(late)]
    deadline = time.monotonic() + args.seconds

    def check(name):
        left = deadline - time.monotonic()
        if left <= 0:
            return name, None, ""
        # Build flags that only GCC knows are no finding.
        command = ["clang-tidy-16", "-p", args.build, "--quiet", "--extra-arg=-Qunused-arguments", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return name, None, ""
        return name, done.returncode, done.stdout + (done.stderr if done.returncode else "")

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, text in pool.map(check, files):
            if code is None:
                late.append(name)
            elif code:
                failed += 1
                print(text, end="")
    print(f"tidy: {len(files)} files, {failed} with findings, {len(late)} left for another commit")
    if failed and not judged:
        print("tidy: a change of more than 80 units is sampled, not judged")
    return 1 if failed and judged else 0


if __name__ == "__main__":
    sys.exit(main())
