#!/usr/bin/env python3
"""Compares Hone with ONNX Runtime on whole models: compare_graphs.py [NAME...] [--backend cpu|ref]

For every model: seeded inputs (model_inputs.py), ONNX Runtime with all of its graph optimisation off, then `hone run
MODEL --inputs X --outputs Y --backend B`, then per output:

  floating point      relative L2 distance |a - b| / |b| at most --tolerance, over the elements that are finite in b;
                      NaN and infinities
                      must sit where b has them
  integers, booleans  equal
  always              same names, shapes and element types

Models come from tests/graphs (restored into --graphs on first use, 3.6 GB for all), from the zoo (fetched into --zoo)
and demo/. ONNX Runtime's answers are kept under --work and used again while model, inputs and ONNX Runtime are the
same. Exit 1 when any model fails."""

import argparse, hashlib, json, os, pathlib, subprocess, sys, time
import numpy as np, onnx
import graphs, model_inputs, zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent


def compare(ours, theirs, tolerance):
    """Compares two {output: array}. Returns (failures, worst relative L2, its output)."""
    failures, worst, where = [], 0.0, ""
    for name in sorted(set(ours) ^ set(theirs)):
        failures.append(f"output '{name}' is {'missing' if name in theirs else 'not an output of the model'}")
    for name in (n for n in theirs if n in ours):
        a, b = ours[name], theirs[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            failures.append(f"output '{name}' is {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}")
        elif not np.issubdtype(b.dtype, np.floating):
            wrong = int((a != b).sum())
            if wrong:
                failures.append(f"output '{name}': {wrong} of {b.size} elements differ")
        else:
            finite = np.isfinite(b)
            if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
                failures.append(f"output '{name}': NaN or infinity where ONNX Runtime has none, or the reverse")
                continue
            a, b = a[finite].astype(np.float64), b[finite].astype(np.float64)
            norm, off = np.linalg.norm(b), np.linalg.norm(a - b)
            distance = float(off / norm) if norm else float(off)
            if distance >= worst:
                worst, where = distance, name
            if distance > tolerance:
                failures.append(f"output '{name}': relative L2 {distance:.2e} is above {tolerance:.0e}")
    return failures, worst, where


def reference(path, feeds, work, label):
    """ONNX Runtime's answers with optimisation off, from the store under `work` or computed now. Returns (outputs,
    seconds or None)."""
    import onnxruntime

    key = hashlib.sha256(f"{onnxruntime.__version__} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    for name, value in sorted(feeds.items()):
        key.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
    store = work / f"{label}.{key.hexdigest()[:16]}.npz"
    if store.exists():
        with np.load(store) as file:
            return dict(file), None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    start = time.monotonic()
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    seconds = time.monotonic() - start
    for old in work.glob(f"{label}.*.npz"):
        old.unlink()
    part = work / f".{label}.{os.getpid()}.npz"
    np.savez(part, **outputs)
    part.rename(store)
    return outputs, seconds


def hone(binary, path, feeds, work, label, backend, timeout):
    """Runs the CLI. Returns (outputs or None, seconds, reason when there are no outputs)."""
    given, got = work / f"{label}.in.npz", work / f"{label}.out.npz"
    np.savez(given, **feeds)
    got.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        result = subprocess.run(
            [binary, "run", path, "--inputs", given, "--outputs", got, "--backend", backend],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - start, f"no answer in {timeout:.0f} s"
    seconds = time.monotonic() - start
    try:
        if result.returncode:
            lines = [line for line in result.stderr.strip().splitlines() if line.strip()]
            return None, seconds, f"exit {result.returncode}: {lines[-1] if lines else 'nothing on stderr'}"
        if not got.exists():
            return None, seconds, "exit 0 without writing the outputs"
        with np.load(got) as file:
            return dict(file), seconds, ""
    finally:
        given.unlink(missing_ok=True)
        got.unlink(missing_ok=True)


def catalogue(args):
    """Every model by name: a function that returns its path, making or fetching the file when it is not there."""
    found = {}
    if args.set in ("graphs", "all"):
        found |= {n: (lambda n=n: graphs.write(n, args.graphs)) for n in graphs.names()}
    if args.set in ("zoo", "all"):
        args.zoo.mkdir(parents=True, exist_ok=True)
        found |= {m.name: (lambda m=m: zoo.fetch(m, args.zoo)) for m in zoo.MODELS}
    if args.set in ("demo", "all"):
        found["fashion_resnet"] = lambda: ROOT / "demo" / "fashion_resnet.onnx"
    return found


def judge(name, get, args):
    """One row of the table."""
    row = {
        "name": name,
        "verdict": "fail",
        "relative_l2": None,
        "output": "",
        "hone_s": None,
        "onnxruntime_s": None,
        "reasons": [],
    }
    try:
        path = get()
        model = onnx.load(path)
        feeds = model_inputs.make(model, name, args.seed, batch=args.batch)
        del model
        theirs, row["onnxruntime_s"] = reference(path, feeds, args.work, name)
    except Exception as error:  # no reference, no verdict: whatever was raised, this model counts as failed
        row["reasons"] = [f"no reference: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
        return row
    ours, row["hone_s"], reason = hone(args.hone, path, feeds, args.work, name, args.backend, args.timeout)
    if ours is None:
        row["reasons"] = [reason]
        return row
    row["reasons"], row["relative_l2"], row["output"] = compare(ours, theirs, args.tolerance)
    row["verdict"] = "fail" if row["reasons"] else "ok"
    return row


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("names", nargs="*", metavar="NAME")
    args.add_argument("--backend", default="cpu")
    args.add_argument("--set", choices=("graphs", "zoo", "demo", "all"), default="all")
    args.add_argument("--hone", type=pathlib.Path, default=ROOT / "build" / "hone")
    args.add_argument(
        "--graphs", type=pathlib.Path, default=ROOT / "build" / "graphs", help="where restored graphs are kept"
    )
    args.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    args.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "compare")
    args.add_argument("--tolerance", type=float, default=1e-4)
    args.add_argument("--seed", type=int, default=model_inputs.SEED)
    args.add_argument("--batch", type=int, help="size of a first dimension that the model leaves free")
    args.add_argument("--timeout", type=float, default=300, help="seconds for one `hone run`")
    args.add_argument("--json", type=pathlib.Path, metavar="FILE")
    args = args.parse_args()
    known = catalogue(args)
    wrong = [n for n in args.names if n not in known]
    if wrong:
        print(f"compare_graphs.py: no such model: {', '.join(wrong)}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    if not args.hone.exists():
        print(f"compare_graphs.py: {args.hone} is not there; build it first", file=sys.stderr)
        return 2
    args.work.mkdir(parents=True, exist_ok=True)
    rows = []
    print(
        f"{'model':28} {'verdict':8} {'rel. L2':>8} {'hone s':>7} {'ORT s':>6}  worst output, or why it fails",
        flush=True,
    )
    for name in args.names or known:
        row = judge(name, known[name], args)
        rows.append(row)
        number = lambda v, form, width: (format(v, form) if v is not None else "-").rjust(width)
        print(
            f"{name:28} {row['verdict']:8} {number(row['relative_l2'], '.1e', 8)} {number(row['hone_s'], '.1f', 7)} {number(row['onnxruntime_s'], '.2f', 6)}  "
            + ("; ".join(row["reasons"]) or row["output"]),
            flush=True,
        )
    failed = sum(row["verdict"] != "ok" for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    if args.json:
        import onnxruntime

        args.json.write_text(
            json.dumps(
                {
                    "backend": args.backend,
                    "tolerance": args.tolerance,
                    "seed": args.seed,
                    "batch": args.batch,
                    "onnxruntime": onnxruntime.__version__,
                    "models": rows,
                },
                indent=1,
            )
            + "\n"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
