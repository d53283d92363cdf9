#!/usr/bin/env python3
"""Holds the documentation to the tree: check_docs.py [--self-test]

- a relative link in a Markdown file leads to a file that is there;
- every environment variable that src/, cli/ or include/ reads has a row in docs/env.md, and every row there is read;
- src/README.md has a section for each folder of cmake/house.txt, and no other.
"""
import os
import re
import subprocess
import sys
import tempfile

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
GETENV = re.compile(r'getenv\(\s*"(HONE_[A-Z_]+)"')
SCRIPT_READS = re.compile(r'(?:\$\{?|environ(?:\.get)?[\[(]")(HONE_[A-Z_]+)')
ENV_ROW = re.compile(r"^\| `(HONE_[A-Z_]+)`", re.M)


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def broken_links(root, names):
    found = []
    for name in names:
        if not name.endswith(".md"):
            continue
        fenced = re.sub(r"```.*?```", lambda block: "\n" * block.group().count("\n"), read(root, name), flags=re.S)
        for number, line in enumerate(fenced.splitlines(), 1):
            for target in LINK.findall(line):
                path = target.split("#")[0]
                if "://" in target or target.startswith("mailto:") or not path:
                    continue
                if not os.path.exists(os.path.join(root, os.path.dirname(name), path)):
                    found.append(f"{name}:{number}: {target} leads nowhere")
    return found


def unmatched_variables(root, names):
    read_by, scripted = {}, set()
    for name in names:
        if name.startswith(("src/", "cli/", "include/")) and not name.endswith("_test.cpp"):
            for variable in GETENV.findall(read(root, name)):
                read_by.setdefault(variable, name)
        elif name.startswith("scripts/") and not name.endswith("check_docs.py"):
            scripted.update(SCRIPT_READS.findall(read(root, name)))
    rows = set(ENV_ROW.findall(read(root, "docs/env.md")))
    found = [f"{where}: {name} has no row in docs/env.md" for name, where in read_by.items() if name not in rows]
    return found + [f"docs/env.md: nothing reads {name}" for name in sorted(rows - set(read_by)) if name not in scripted]


def missing_sections(root):
    house = re.findall(r"^([a-z]+):", read(root, "cmake/house.txt"), re.M)
    sections = re.findall(r"^## ([a-z]+)$", read(root, "src/README.md"), re.M)
    # The README may order folders of one layer as a model meets them; the house file orders by who sees whom.
    found = [f"src/README.md: no section for {folder}" for folder in house if folder not in sections]
    return found + [f"src/README.md: {name} is no folder of the house" for name in sections if name not in house]


def check(root, names):
    return broken_links(root, names) + unmatched_variables(root, names) + missing_sections(root)


def self_test():
    files = {
        "cmake/house.txt": "base:\nir: base\n",
        "src/README.md": "## base\n\n## attic\n",
        "docs/env.md": "| `HONE_ISA` | x |\n| `HONE_GONE` | x |\n| `HONE_BASE` | x |\n",
        "src/base/a.cpp": 'getenv("HONE_ISA"); getenv("HONE_NEW");\n',
        "scripts/a.sh": "$HONE_BASE\n",
        "a.md": "[x](docs/env.md#y) [y](gone.md) [z](https://example.org)\n```\n[q](also_gone.md)\n```\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w") as file:
                file.write(text)
        found = check(root, sorted(files))
    expected = [
        "a.md:1: gone.md leads nowhere",
        "src/base/a.cpp: HONE_NEW has no row in docs/env.md",
        "docs/env.md: nothing reads HONE_GONE",
        "src/README.md: no section for ir",
        "src/README.md: attic is no folder of the house",
    ]
    assert found == expected, found
    print(f"check_docs: self-test passed: {len(expected)} planted faults found")


def main():
    if "--self-test" in sys.argv:
        self_test()
        return 0
    root = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    )
    names = [name for name in listed.stdout.split("\0") if name and os.path.isfile(os.path.join(root, name))]
    found = check(root, names)
    for line in found:
        print("check_docs: " + line, file=sys.stderr)
    print(f"check_docs: {len(found)} faults" if found else "check_docs: links, variables and folders agree with the tree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
