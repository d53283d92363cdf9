#!/usr/bin/env python3
"""Writes src/ops/schema_table.inc: the facts of every operator version of ai.onnx, read from PyPI onnx's own onnx.defs.

    python scripts/gen_schema.py            # rewrite the table
    python scripts/gen_schema.py --check    # exit 1 when the checked-in table is not what this onnx says

The table is checked in, so that building needs no Python. Its rows are explained in src/ops/schema.h.
"""
import argparse
import pathlib
import re
import sys

import onnx
import onnx.defs

PINNED = "1.23.2"
OUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "ops" / "schema_table.inc"

DTYPES = {
    "float": "f32", "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "int32": "i32", "int64": "i64",
    "string": "string", "bool": "bool", "float16": "f16", "double": "f64", "uint32": "u32", "uint64": "u64",
    "complex64": "c64", "complex128": "c128", "bfloat16": "bf16", "float8e4m3fn": "f8e4m3fn",
    "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2", "float8e5m2fnuz": "f8e5m2fnuz", "uint4": "u4",
    "int4": "i4", "float4e2m1": "f4e2m1", "float8e8m0": "f8e8m0", "uint2": "u2", "int2": "i2",
}
# Six-bit floats of opset 28: hone::DType has no value for them, so a model that uses one is refused as an unknown type.
LEFT_OUT = {"float6e2m3", "float6e3m2"}
ORDER = {name: i for i, name in enumerate(DTYPES.values())}
KINDS = {
    "INT": "i", "FLOAT": "f", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "INTS": "is", "FLOATS": "fs", "STRINGS": "ss",
    "TENSORS": "ts", "GRAPHS": "gs", "SPARSE_TENSOR": "sp", "TYPE_PROTO": "tp",
}
FORMS = [("", r"tensor\((\w+)\)"), ("seq", r"seq\(tensor\((\w+)\)\)"), ("opt", r"optional\(tensor\((\w+)\)\)"),
         ("optseq", r"optional\(seq\(tensor\((\w+)\)\)\)")]


def type_set(types):
    """`f32 f16 seq:f32`: dtypes of plain tensors, then of sequences, optionals and optional sequences of tensors."""
    found = []
    for t in types:
        for rank, (form, pattern) in enumerate(FORMS):
            m = re.fullmatch(pattern, t)
            if m:
                if m.group(1) in LEFT_OUT:
                    break
                dtype = DTYPES[m.group(1)]
                found.append((rank, ORDER[dtype], (form + ":" if form else "") + dtype))
                break
        else:
            sys.exit(f"type {t} has no spelling in the table")
    return " ".join(text for _, _, text in sorted(set(found)))


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def default_text(attr):
    value = attr.default_value
    kind = KINDS[attr.type.name]
    if not value.name:
        return ""
    if kind == "i":
        return f"={value.i}"
    if kind == "f":
        return f"={value.f!r}"
    if kind == "s":
        text = value.s.decode()
        if set(text) & set(" ,;=\""):
            sys.exit(f"default {text!r} of {attr.name} needs quoting")
        return f"={text}"
    if kind == "is":
        return "=" + ":".join(str(i) for i in value.ints)
    if kind == "ss":
        return "=" + ":".join(s.decode() for s in value.strings)
    sys.exit(f"default of {attr.name}: type {attr.type.name} not handled")


def rows():
    sets = {}

    def set_number(types):
        return sets.setdefault(type_set(types), len(sets))

    def params(formals, variables, minimum):
        out = []
        for i, p in enumerate(formals):
            option = {"Single": "", "Optional": "?", "Variadic": "*"}[p.option.name]
            if option == "*" and not p.is_homogeneous:
                option = "**"
            name = p.type_str if p.type_str in variables else f"#{set_number(p.types)}"
            out.append(f"{re.sub(r'[^A-Za-z0-9_]', '_', p.name)}{option} {name}")
        return ", ".join(out)

    lines = []
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""]
    for s in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        variables = {c.type_param_str: set_number(c.allowed_type_strs) for c in s.type_constraints}
        types = " ".join(f"{k}={v}" for k, v in variables.items())
        attrs = ", ".join(f"{a.name}{'!' if a.required else ''} {KINDS[a.type.name]}{default_text(a)}"
                          for _, a in sorted(s.attributes.items()))
        arity = f"{s.min_input} {s.min_output}" + (" deprecated" if s.deprecated else "")
        lines.append("HONE_SCHEMA({}, {}, {},\n            {},\n            {}, {},\n            {})".format(
            quote(s.name), s.since_version, quote(arity), quote(params(s.inputs, variables, s.min_input)),
            quote(params(s.outputs, variables, s.min_output)), quote(types), quote(attrs)))
    head = [f"// Operator versions of ai.onnx, written by scripts/gen_schema.py from onnx {PINNED}. Do not edit."]
    head += [f"HONE_TYPES({i}, {quote(text)})" for text, i in sorted(sets.items(), key=lambda kv: kv[1])]
    return "\n".join(head + lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    if onnx.__version__ != PINNED:
        sys.exit(f"gen_schema: needs onnx {PINNED}, found {onnx.__version__}")
    text = rows()
    if args.check:
        if OUT.read_text() != text:
            sys.exit(f"gen_schema: {OUT.name} differs from what onnx {PINNED} says; run this script without --check")
        return
    OUT.write_text(text)


if __name__ == "__main__":
    main()
