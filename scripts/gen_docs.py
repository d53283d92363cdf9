#!/usr/bin/env python3
"""Writes the generated documentation: gen_docs.py [--hone build/hone] [--out build/docs] [--self-test]

operators.md  from `hone --list-ops --json`:    [{"domain", "name", "since", "backends"}]
passes.md     from `hone --list-passes --json`: [{"name", "class", "summary"}]
headers.md    from include/hone/*.h: each public header's opening comment

A table whose listing the program does not offer is left out, and said so. Exit 1 when the program is missing.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def listing(hone, flag):
    """The rows that `hone FLAG --json` prints, or None when it does not know the flag."""
    done = subprocess.run([hone, flag, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    try:
        rows = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        sys.exit(f"gen_docs: hone {flag} --json printed no JSON: {error}")
    # Either a bare array, or the one object that every --json command prints, with the array as its only list.
    if isinstance(rows, dict):
        lists = [value for value in rows.values() if isinstance(value, list)]
        if len(lists) != 1:
            raise ValueError(f"hone {flag} --json: expected one list, found {len(lists)}")
        rows = lists[0]
    return rows


def cell(value):
    if isinstance(value, (list, tuple)):
        value = ", ".join(cell(item) for item in value)
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def operators_page(rows):
    rows = sorted(rows, key=lambda row: (row["domain"], row["name"]))
    backends = sorted({backend for row in rows for backend in row.get("backends", [])})
    body = [
        [
            row["domain"] or "ai.onnx",
            row["name"],
            row["since"],
            *("yes" if backend in row.get("backends", []) else "" for backend in backends),
        ]
        for row in rows
    ]
    return (
        "# Operators\n\n"
        f"{len(rows)} operators. *Since*: the opset versions at which the definition changed, of those Hone reads. A\n"
        "backend without a mark of its own runs the operator through `ref`.\n\n"
        + table(["domain", "operator", "since", *backends], body)
    )


def passes_page(rows):
    heads = list(rows[0]) if rows else ["name"]
    return (
        "# Passes and rewrites\n\n"
        f"{len(rows)}, in the order they run. Each can be switched off by name: `HONE_DISABLE=<name>`.\n\n"
        + table(heads, [[row.get(head, "") for head in heads] for row in rows])
    )


def opening_comment(text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.lstrip("/").removeprefix(" "))
    return "\n".join(lines).strip()


def headers_page(paths):
    parts = ["# Public headers\n"]
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            parts.append(f"## hone/{os.path.basename(path)}\n\n{opening_comment(file.read())}\n")
    return "\n".join(parts)


def self_test():
    page = operators_page(
        [
            {"domain": "", "name": "Relu", "since": [6, 13, 14], "backends": ["ref", "cpu"]},
            {"domain": "", "name": "Abs", "since": [13], "backends": ["ref"]},
        ]
    )
    rows = [line for line in page.splitlines() if line.startswith("| ai.onnx")]
    assert rows == ["| ai.onnx | Abs | 13 |  | yes |", "| ai.onnx | Relu | 6, 13, 14 | yes | yes |"], rows
    assert "| a\\|b | exact |" in passes_page([{"name": "a|b", "class": "exact"}])
    assert passes_page([]).startswith("# Passes")
    assert opening_comment("// One.\n/// Two.\n#pragma once\n// no") == "One.\nTwo."
    print("gen_docs: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", default=os.path.join(ROOT, "build", "hone"))
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "docs"))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    if not os.path.exists(args.hone):
        print(f"gen_docs: {args.hone} is missing; build it first", file=sys.stderr)
        return 1

    pages = {"headers.md": headers_page(glob.glob(os.path.join(ROOT, "include", "hone", "*.h")))}
    for name, flag, write in (
        ("operators.md", "--list-ops", operators_page),
        ("passes.md", "--list-passes", passes_page),
    ):
        rows = listing(args.hone, flag)
        if rows is None:
            print(f"gen_docs: {name} left out: this hone has no {flag} --json", file=sys.stderr)
        else:
            pages[name] = write(rows)
    os.makedirs(args.out, exist_ok=True)
    for name, text in pages.items():
        with open(os.path.join(args.out, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(f"gen_docs: {', '.join(sorted(pages))} in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
