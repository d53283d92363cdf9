#!/usr/bin/env python3
"""Files that differ from where this work began, one a line: changed.py [--base] [SUFFIX...]

Where it began is, in this order: $HONE_BASE; the merge base of HEAD with its upstream or origin/main, unless that is
HEAD itself (a clone of what is to land); the newest commit at least four hours older than HEAD. If there is none of
these, every tracked file counts as changed. Uncommitted and untracked files count too. --base prints the commit.
"""
import os
import subprocess
import sys

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def git(*args):
    done = subprocess.run(["git", *args], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def find_base():
    if os.environ.get("HONE_BASE"):
        return os.environ["HONE_BASE"]
    head = git("rev-parse", "HEAD")
    for upstream in ("@{upstream}", "origin/main"):
        base = git("merge-base", "HEAD", upstream)
        if base and base != head:
            return base
    seconds = git("show", "-s", "--format=%ct", "HEAD")
    if seconds:
        older = git("rev-list", "-1", f"--before={int(seconds) - 4 * 3600}", "HEAD")
        if older:
            return older
    return EMPTY_TREE


def changed_files(suffixes=()):
    names = git("diff", "--name-only", "--diff-filter=d", find_base()).splitlines()
    names += git("ls-files", "--others", "--exclude-standard").splitlines()
    return sorted({name for name in names if os.path.isfile(name) and name.endswith(tuple(suffixes) or "")})


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if "--base" in sys.argv:
        print(find_base())
    else:
        print("\n".join(changed_files(sys.argv[1:])))
