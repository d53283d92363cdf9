#!/usr/bin/env python3
"""Counts the activation bytes that a model moves, before and after Hone: count_traffic.py BEFORE.onnx AFTER.onnx [--shapes x:1x3x224x224,...]

AFTER is what `hone simplify BEFORE -o AFTER` or `hone build --save-onnx` wrote. The count is made from ONNX files alone: shapes come from
onnx.shape_inference on the bound inputs and, where that knows none, from running the model in ONNX Runtime with every value as an output.

Each node reads each input that is no constant once and writes each output once; a constant is an initializer or what a Constant node makes.
Reshape, Squeeze, Unsqueeze, Flatten and Identity rename bytes and move none. A call of a model-local function (a fused layer) is one node;
nodes of subgraphs count once.

--ledger FILE: the JSON of `hone build --json` (or a plain number); its bytes_not_moved must equal before less after, else exit code 1.
--at-least P: exit code 1 when less than P per cent of the traffic is gone.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, shape_inference

VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
BITS = {
    TensorProto.FLOAT: 32, TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16, TensorProto.INT16: 16, TensorProto.INT32: 32,
    TensorProto.INT64: 64, TensorProto.BOOL: 8, TensorProto.FLOAT16: 16, TensorProto.DOUBLE: 64, TensorProto.UINT32: 32,
    TensorProto.UINT64: 64, TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128, TensorProto.BFLOAT16: 16,
    TensorProto.FLOAT8E4M3FN: 8, TensorProto.FLOAT8E5M2: 8, TensorProto.UINT4: 4, TensorProto.INT4: 4,
}  # fmt: skip


def bind(model, shapes):
    """Gives every graph input a static shape: the one asked for, else 1 for each symbol."""
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for i, dim in enumerate(dims):
            if value.name in shapes:
                dim.dim_value = shapes[value.name][i]
            elif not dim.HasField("dim_value"):
                dim.dim_value = 1
    del model.graph.value_info[:]  # the file's own claims; what counts is inferred
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def known(value):
    t = value.type.tensor_type
    if not t.elem_type or not t.HasField("shape") or not all(d.HasField("dim_value") for d in t.shape.dim):
        return None
    return t.elem_type, [d.dim_value for d in t.shape.dim]


def run_shapes(model, names):
    """Types and shapes of values by running the model with these as outputs, on zeros (ones where zeros would be no valid index or size)."""
    import onnxruntime

    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {}
    for value in session.get_inputs():
        dtype = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool}.get(value.type)
        if dtype is None:
            sys.exit(f"count_traffic.py: input '{value.name}' has type {value.type}, which this script cannot feed")
        feeds[value.name] = np.ones(value.shape, dtype)
    found = {}
    for name, array in zip(names, session.run(names, feeds)):
        found[name] = (onnx.helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
    return found


def constants_of(graph):
    return {t.name for t in graph.initializer} | {o for n in graph.node if n.op_type == "Constant" for o in n.output}


def types_of(model):
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    graph = inferred.graph
    types = {}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        if (t := known(value)) is not None:
            types[value.name] = t
    constant = constants_of(graph)
    wanted = {name for node in graph.node for name in [*node.input, *node.output] if name and name not in constant}
    produced = {name for node in graph.node for name in node.output}
    missing = sorted((wanted & produced) - types.keys())
    if missing:
        types |= run_shapes(model, missing)
    return types


def size(t):
    count = 1
    for d in t[1]:
        count *= d
    return (count * BITS[t[0]] + 7) // 8


def traffic(graph, types):
    constant = constants_of(graph)
    total = 0
    for node in graph.node:
        for attribute in node.attribute:
            for sub in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                inner = shape_inference.infer_shapes(onnx.helper.make_model(sub)).graph
                total += traffic(sub, types | {v.name: t for v in inner.value_info if (t := known(v)) is not None})
        if node.op_type == "Constant" or (node.op_type in VIEWS and node.domain in ("", "ai.onnx")):
            continue
        for name in [*node.input, *node.output]:
            if name and name not in constant and name in types:
                total += size(types[name])
    return total


def count(path, shapes):
    model = onnx.load(path)
    bind(model, shapes)
    return traffic(model.graph, types_of(model))


def ledger_bytes(path):
    text = pathlib.Path(path).read_text()
    data = json.loads(text)
    if isinstance(data, int):
        return data
    for key in ("bytes_not_moved", "ledger_bytes"):
        if key in data:
            return data[key]
    if isinstance(data.get("engine"), dict) and "bytes_not_moved" in data["engine"]:
        return data["engine"]["bytes_not_moved"]
    sys.exit(f"count_traffic.py: {path} names no bytes_not_moved")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("before")
    args.add_argument("after")
    args.add_argument("--shapes", default="")
    args.add_argument("--ledger")
    args.add_argument("--at-least", type=float, default=0)
    args = args.parse_args()
    shapes = {}
    for part in filter(None, args.shapes.split(",")):
        name, _, dims = part.rpartition(":")
        shapes[name] = [int(d) for d in dims.split("x")]
    before, after = count(args.before, shapes), count(args.after, shapes)
    share = 100 * (before - after) / before if before else 0
    print(f"before {before} bytes, after {after} bytes, not moved {before - after} bytes ({share:.2f} %)")
    failed = share < args.at_least
    if args.ledger:
        claimed = ledger_bytes(args.ledger)
        print(f"the ledger says {claimed} bytes: {'equal' if claimed == before - after else 'DIFFERENT'}")
        failed = failed or claimed != before - after
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
