#!/usr/bin/env python3
"""Writes the node and model cases of PyPI onnx as files and runs them: conformance of import and operators.

    python scripts/conformance.py                          # generate into build/conformance, run all on the reference
    python scripts/conformance.py --sample 200 --seed X    # 200 cases drawn by a seed (a commit, say)
    python scripts/conformance.py --only conv,maxpool      # names that contain one of these
    python scripts/conformance.py --generate-only

A case is a folder with model.onnx and data_<i>.onnx; the latter is a graph of nothing but initializers, `in:<j>` and `out:<j>`, with the case's
tolerances and the operator it is about as metadata. Cases whose values are not tensors (sequences, optionals, strings) are listed in skipped.txt with the reason.
The runner (tests/onnx/conformance_runner.cpp) prints pass counts an operator and exits 1 when a case of the expected list fails.
"""
import argparse
import pathlib
import random
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")


def tensor_proto(value, name):
    """A value of a case as a TensorProto; the reason as a string when it is not a plain tensor."""
    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        tensor.name = name
    elif isinstance(value, (list, tuple, dict)) or value is None:
        return "a sequence, map or empty optional"
    else:
        tensor = onnx.numpy_helper.from_array(np.asarray(value), name)
    if tensor.data_type == onnx.TensorProto.STRING:
        return "strings"
    return tensor


def read_pb(path, type_proto):
    if type_proto.HasField("tensor_type"):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        return tensor
    return None


def data_sets(case):
    if case.data_sets is not None:
        return case.data_sets
    folder = pathlib.Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    inputs, outputs = model.graph.input, model.graph.output
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        ins = [read_pb(data / f"input_{i}.pb", inputs[i].type) for i in range(len(list(data.glob("input_*.pb"))))]
        outs = [read_pb(data / f"output_{i}.pb", outputs[i].type) for i in range(len(list(data.glob("output_*.pb"))))]
        sets.append((ins, outs))
    return sets


def operator_of(case, model):
    """The operator a case is about: the node of a one-node graph; of an expanded function, its parent case's."""
    nodes = model.graph.node
    if case.kind == "node" and len(nodes) == 1:
        return nodes[0].op_type
    if case.kind == "node":
        return f"expanded:{case.name.split('_expanded')[0]}"
    return case.kind


def generate(out):
    from onnx.backend.test.loader import load_model_tests

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    parents, skipped, written = {}, [], 0
    for kind in KINDS:
        for case in sorted(load_model_tests(kind=kind), key=lambda c: (c.name.count("_expanded"), c.name)):
            if case.url and not case.model_dir:
                continue
            model = case.model if case.model is not None else onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
            op = operator_of(case, model)
            if op.startswith("expanded:"):
                op = parents.get(op.split(":", 1)[1], "function") + " expanded"
            else:
                parents[case.name] = op
            folder = out / case.name
            for i, (inputs, outputs) in enumerate(data_sets(case)):
                tensors = [tensor_proto(v, f"in:{j}") for j, v in enumerate(inputs)]
                tensors += [tensor_proto(v, f"out:{j}") for j, v in enumerate(outputs)]
                reasons = [t for t in tensors if isinstance(t, str)]
                if reasons:
                    skipped.append(f"{case.name}\t{op}\t{reasons[0]}")
                    break
                folder.mkdir(exist_ok=True)
                graph = onnx.helper.make_graph([], "data", [], [], initializer=tensors)
                data = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
                onnx.helper.set_model_props(data, {"rtol": repr(case.rtol), "atol": repr(case.atol), "op": op})
                (folder / f"data_{i}.onnx").write_bytes(data.SerializeToString())
                (folder / "model.onnx").write_bytes(model.SerializeToString())
            else:
                written += 1
    (out / "skipped.txt").write_text("\n".join(skipped) + "\n")
    (out / "generated_by.txt").write_text(f"onnx {onnx.__version__}\n")
    print(f"{written} cases in {out}, {len(skipped)} skipped", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "build" / "conformance", help="folder of the cases")
    parser.add_argument("--runner", type=pathlib.Path, default=ROOT / "build" / "tests" / "conformance_runner")
    parser.add_argument("--backend", default="ref")
    parser.add_argument("--expected", type=pathlib.Path, help="cases that must pass (default tests/onnx/expected_<backend>.txt)")
    parser.add_argument("--sample", type=int, help="run this many cases only")
    parser.add_argument("--seed", default="0", help="seed of --sample")
    parser.add_argument("--only", help="run cases whose names contain one of these, separated by commas")
    parser.add_argument("--regenerate", action="store_true")
    parser.add_argument("--generate-only", action="store_true")
    parser.add_argument("--write-expected", action="store_true", help="make what passes now the list of cases that must")
    args = parser.parse_args()

    stamp = args.cases / "generated_by.txt"
    if args.regenerate or not stamp.exists() or stamp.read_text().split()[-1] != onnx.__version__:
        generate(args.cases)
    if args.generate_only:
        return 0
    names = sorted(p.name for p in args.cases.iterdir() if p.is_dir())
    if args.only:
        names = [n for n in names if any(part in n for part in args.only.split(","))]
    if args.sample:
        names = sorted(random.Random(args.seed).sample(names, min(args.sample, len(names))))
    expected = args.expected or ROOT / "tests" / "onnx" / f"expected_{args.backend}.txt"
    command = [str(args.runner), str(args.cases), "--names", "-", "--backend", args.backend]
    if args.write_expected:
        command += ["--write-expected", str(expected)]
    elif expected.exists():
        command += ["--expected", str(expected)]
    return subprocess.run(command, input="\n".join(names), text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
