#!/usr/bin/env python3
"""Restores the test graphs as runnable models: graphs.py OUT [NAME...] [--list] [--force]

tests/graphs/ holds 34 graphs that PyTorch's exporters wrote for real architectures, stored without their weights:
floating-point initializers of 2,048 elements or more are zeros there (which is why all of them fit in 8 MB), and
NAME.json says which and how each was distributed. Restoring draws every one again:

    w = z * std * gain + mean        z: standard normal, generator PCG64 seeded with the CRC-32 of the tensor's name,
                                     drawn in f32, row-major

std is one number, or one per index of the first axis (a convolution's output channels); gain is the file's `gain` for
tensors of rank 3 and more and `gain_2d` for others, chosen so that activations keep ordinary ranges. So the answers
mean nothing, but every weight matters to them and they are the same on every machine. OUT/NAME.onnx is written by
rename and kept when it is newer than its sources."""

import argparse, json, lzma, os, pathlib, sys, zlib
import numpy as np, onnx
from onnx import numpy_helper

STORED = pathlib.Path(__file__).resolve().parent.parent / "tests" / "graphs"


def names():
    return sorted(p.name.removesuffix(".onnx.xz") for p in STORED.glob("*.onnx.xz"))


def draw(name, shape, dtype, mean, std, gain):
    """One tensor. f32 arithmetic throughout, in this order: other orders round differently."""
    z = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape, dtype=np.float32)
    if isinstance(std, list):
        std = np.array(std, np.float32).reshape((-1,) + (1,) * (len(shape) - 1))
    return (z * std * gain + mean).astype(dtype)


def restore(name):
    """The model of one stored graph, weights drawn."""
    model = onnx.load_model_from_string(lzma.decompress((STORED / f"{name}.onnx.xz").read_bytes()))
    stats = json.loads((STORED / f"{name}.json").read_text())
    left = dict(stats["weights"])
    for tensor in model.graph.initializer:
        if tensor.name in left:
            mean, std = left.pop(tensor.name)
            gain = stats.get("gain" if len(tensor.dims) >= 3 else "gain_2d", 1.0)
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            tensor.CopyFrom(
                numpy_helper.from_array(draw(tensor.name, tuple(tensor.dims), dtype, mean, std, gain), tensor.name)
            )
    if left:
        raise ValueError(f"{name}: statistics for tensors that the graph does not have: {', '.join(left)}")
    return model


def write(name, out, force=False):
    """Restores one graph into the folder `out`; returns the path."""
    path = out / f"{name}.onnx"
    sources = [STORED / f"{name}.onnx.xz", STORED / f"{name}.json", pathlib.Path(__file__)]
    if force or not path.exists() or path.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        out.mkdir(parents=True, exist_ok=True)
        part = out / f".{name}.{os.getpid()}"
        onnx.save(restore(name), part)
        part.rename(path)
    return path


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", type=pathlib.Path, nargs="?")
    args.add_argument("names", nargs="*", metavar="NAME")
    args.add_argument("--list", action="store_true")
    args.add_argument("--force", action="store_true", help="write anew what is there already")
    args = args.parse_args()
    known = names()
    if args.list:
        print("\n".join(known))
        return 0
    if not args.out:
        print("graphs.py: a folder to write to is needed, or --list", file=sys.stderr)
        return 2
    wrong = sorted(set(args.names) - set(known))
    if wrong:
        print(f"graphs.py: no such graph: {', '.join(wrong)} (graphs.py --list)", file=sys.stderr)
        return 2
    for name in args.names or known:
        print(write(name, args.out, args.force), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
