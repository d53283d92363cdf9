#!/usr/bin/env python3
"""Reads ONNX models with Hone, writes them again unoptimised, and compares both files in ONNX Runtime.

    scripts/roundtrip.py MODEL.onnx...            every output of the copy against the original's, optimisation off
    scripts/roundtrip.py --command 'TOOL {input} {output}' MODEL.onnx...

Inputs are seeded random numbers; symbolic dimensions are set to --dim (first one: 1). The copy must pass onnx.checker and give the
same shapes, types and integers, and floats within --tolerance relative L2. Exit code 1 when a model fails.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_,
          "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds(run, dim):
    rng = np.random.default_rng(0)
    sizes, out = {}, {}
    for value in run.get_inputs():
        shape = []
        for axis, d in enumerate(value.shape):
            if isinstance(d, int):
                shape.append(d)
            else:
                shape.append(sizes.setdefault(d, 1 if axis == 0 else dim))
        dtype = DTYPES[value.type]
        if np.issubdtype(dtype, np.floating):
            out[value.name] = rng.standard_normal(shape).astype(dtype)
        elif dtype == np.bool_:
            out[value.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            # Token ids, masks, positions: small numbers suit all of them.
            out[value.name] = rng.integers(0, 2, shape).astype(dtype)
    return out


def difference(a, b):
    """None when equal enough to compare, else what differs; and the relative L2 distance."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}", 0.0
    if not np.issubdtype(a.dtype, np.floating):
        return (None if np.array_equal(a, b) else "integers differ"), 0.0
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    if not np.array_equal(np.isfinite(x), np.isfinite(y)):
        return "NaN or infinity differ", 0.0
    finite = np.isfinite(x)
    norm = np.linalg.norm(x[finite])
    return None, float(np.linalg.norm(x[finite] - y[finite]) / (norm if norm else 1.0))


def check(path, command, dim, tolerance):
    try:
        original = session(path)
        data = feeds(original, dim)
        names = [o.name for o in original.get_outputs()]
        expected = original.run(names, data)
    except Exception as e:
        print(f"skip  {os.path.basename(path)}: ONNX Runtime does not run the original ({str(e)[:120]})")
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.onnx")
        words = [w.format(input=path, output=copy) for w in command.split()]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0 or not os.path.exists(copy):
            return f"not written (exit code {done.returncode}): {(done.stderr or done.stdout).strip()[-2000:]}"
        onnx.checker.check_model(copy)
        model = onnx.load(copy, load_external_data=False)
        opset = {o.domain or "ai.onnx": o.version for o in model.opset_import}
        again = session(copy)
        for a, b in zip(original.get_inputs(), again.get_inputs(), strict=True):
            if a.name != b.name or a.type != b.type:
                return f"input {a.name} {a.type} became {b.name} {b.type}"
        if names != [o.name for o in again.get_outputs()]:
            return "outputs have other names"
        worst = 0.0
        for name, a, b in zip(names, expected, again.run(names, data), strict=True):
            what, error = difference(np.asarray(a), np.asarray(b))
            if what:
                return f"output {name}: {what}"
            worst = max(worst, error)
        if worst > tolerance:
            return f"relative L2 {worst:.2e} exceeds {tolerance:.0e}"
        print(f"ok    {os.path.basename(path)}: ir {model.ir_version} opset {opset}, relative L2 {worst:.1e}")
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--command", default=os.path.join(ROOT, "build", "hone") + " simplify {input} -o {output} --disable *")
    parser.add_argument("--dim", type=int, default=16, help="size of symbolic dimensions other than the first")
    parser.add_argument("--tolerance", type=float, default=1e-6)
    args = parser.parse_args()
    failed = 0
    for path in args.models:
        try:
            problem = check(path, args.command, args.dim, args.tolerance)
        except Exception as e:  # a checker or runtime error is a failed model; the others are still tried
            problem = f"{type(e).__name__}: {str(e)[:2000]}"
        if problem:
            failed += 1
            print(f"FAIL  {os.path.basename(path)}: {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
