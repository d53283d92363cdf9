#!/usr/bin/env python3
"""Times Hone beside ONNX Runtime and OpenVINO, paired: peers.py [MODEL...] [--threads 1,2] [--require 0.6]

Every runtime lives in a process of its own and gets short slices of time in turn, A B C, B C A, C A B, ...: what
disturbs the machine disturbs all of them alike, and each round gives one ratio of medians. Reported per model, number
of threads and runtime:

  median       of the slices' medians, milliseconds; spread: distance of their quartiles
  p90          median of the slices' 90th percentiles
  speed        ONNX Runtime's time over this runtime's, median over rounds with its quartiles; above 1 is faster than
               ONNX Runtime
  error        worst output's relative L2 distance from the oracle (f64 arithmetic; ONNX Runtime without optimisation
               where hone has none)

Settings, the same for all: batch and shapes of model_inputs.py (or SHAPES below), inputs and outputs bound
beforehand, one stream. ONNX Runtime runs with all optimisation and its default spinning threads. OpenVINO is told f32
(its default on machines with AMX is bf16) and latency. Hone runs as `hone bench ENGINE` in each slice, engine built
beforehand: `hone` as it is by default, `hone-strict` with --strict-f32. Absolute times belong to the machine; quote
the ratios. The share of processor time that others took between slices is printed, and above 5 % the result is marked
as disturbed."""

import argparse, collections, json, os, pathlib, platform, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import numpy as np
import graphs, hone_cli, model_inputs, zoo

MODELS = (
    "resnet50.dynamo",
    "mobilenet_v2.dynamo",
    "bert_base.dynamo",
    "vit_b_16.dynamo",
    "pp_ocr_v4_rec",
    "pp_ocr_v4_det",
    "minilm_l3",
    "fashion_resnet",
)
SHAPES = {
    "pp_ocr_v4_det": {"x": (1, 3, 640, 640)},
    "minilm_l3": {"input_ids": (1, 128), "attention_mask": (1, 128)},
    "fashion_resnet": {"image": (1, 1, 28, 28)},
}
RUNTIMES = ("hone", "hone-strict", "onnxruntime", "openvino")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
FLAGS = {"hone": (), "hone-strict": ("--strict-f32",)}


def find(name, args):
    """The model's file."""
    if name in graphs.names():
        return graphs.write(name, args.graphs)
    if name == "fashion_resnet":
        return ROOT / "demo" / "fashion_resnet.onnx"
    known = {m.name: m for m in zoo.MODELS}
    if name not in known:
        raise SystemExit(f"peers.py: no such model: {name}")
    args.zoo.mkdir(parents=True, exist_ok=True)
    return zoo.fetch(known[name], args.zoo)


def time_slice(run, seconds):
    """Warms up for a fifth of the slice (once at least), then times single runs until the slice is over; five at
    least. Returns ms."""
    end = time.perf_counter() + seconds / 5
    run()
    while time.perf_counter() < end:
        run()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        start = time.perf_counter_ns()
        run()
        samples.append((time.perf_counter_ns() - start) / 1e6)
    return samples


def figures(samples):
    """What a slice reports: percentiles of its runs in ms, runs a second, how many."""
    values = {name: float(np.quantile(samples, q)) for name, q in QUANTILES.items()}
    return values | {"per_s": 1000 * len(samples) / sum(samples), "runs": len(samples)}


def worker(runtime, path, feeds_path, threads):
    """The process of a peer: answers each line 'SECONDS' with the slice's figures as JSON, 'outputs FILE' by writing
    its outputs."""
    with np.load(feeds_path) as file:
        feeds = dict(file)
    if runtime == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, feeds)))
        binding = session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        held = {n: onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(v)) for n, v in outputs.items()}
        for name, value in held.items():
            binding.bind_ortvalue_output(name, value)
        run = lambda: session.run_with_iobinding(binding)
        result = lambda: {n: v.numpy() for n, v in held.items()}
    else:
        import openvino

        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: openvino.PartialShape(list(value.shape)) for name, value in feeds.items()})
        compiled = core.compile_model(
            model,
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": "f32",
                "INFERENCE_NUM_THREADS": threads,
                "NUM_STREAMS": 1,
                "PERFORMANCE_HINT": "LATENCY",
            },
        )
        request = compiled.create_infer_request()
        for name, value in feeds.items():
            request.set_tensor(name, openvino.Tensor(value))
        run = request.infer
        result = lambda: {  # a port has every name that the graph gives its value
            name: request.get_tensor(port).data.copy() for port in compiled.outputs for name in port.get_names()
        }
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split(maxsplit=1)
        if word == "outputs":
            run()
            np.savez(rest[0].strip(), **result())
            print("{}", flush=True)
        else:
            print(json.dumps(figures(time_slice(run, float(word)))), flush=True)


class Peer:
    """A worker process seen from outside; `slice` and `outputs` have the meaning of the worker's two lines."""

    def __init__(self, runtime, path, feeds_path, threads):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", runtime, str(path), str(feeds_path), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ask(None)

    def ask(self, line):
        if line is not None:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError((self.process.stderr.read().strip().splitlines() or ["the worker ended"])[-1])
        return None if answer == "ready\n" else json.loads(answer)

    def slice(self, seconds):
        return self.ask(str(seconds))

    def outputs(self, feeds, path):
        self.ask(f"outputs {path}")
        with np.load(path) as file:
            return dict(file)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class HonePeer:
    """`hone bench ENGINE` once a slice, so many iterations as the slice before showed to fill one. Extra flags go to
    each."""

    def __init__(self, hone, engine, threads, *flags):
        self.hone, self.engine, self.iterations = hone, engine, 5
        self.flags = ("--threads", threads, *flags)

    def slice(self, seconds):
        report = self.hone.bench(self.engine, "--iterations", self.iterations, *self.flags)
        taken = {name: report.number(f"bench.{name}_ms") for name in QUANTILES}
        taken |= {"per_s": report.number("bench.throughput"), "runs": self.iterations}
        self.iterations = max(5, int(1000 * seconds / taken["p50"]))
        return taken

    def outputs(self, feeds, path):
        return self.hone.run(self.engine, feeds)

    def close(self):
        pass


def take_turns(peers, rounds, seconds):
    """Slices of {name: peer} in turn, the order rotating. Returns ({name: [figures]}, share of the processors taken
    by others)."""
    order, slices, noise = list(peers), collections.defaultdict(list), []
    for peer in peers.values():
        peer.slice(seconds / 4)
    for _ in range(rounds):
        noise.append(others())
        for name in order:
            slices[name].append(peers[name].slice(seconds))
        order = order[1:] + order[:1]
    return slices, statistics.median(noise)


def others(seconds=0.15):
    """Share of processor time used by anyone while we sleep."""

    def read():
        with open("/proc/stat") as file:
            fields = list(map(int, file.readline().split()[1:9]))
        return sum(fields), fields[3] + fields[4]

    total, idle = read()
    time.sleep(seconds)
    total2, idle2 = read()
    return 1 - (idle2 - idle) / max(1, total2 - total)


def oracle(path, feeds, hone):
    """The outputs to measure errors against, and what computed them."""
    if hone:
        try:
            return hone.run(path, feeds, "--backend", "ref", "--oracle"), "hone, f64"
        except hone_cli.HoneFailed as error:
            print(f"  no oracle: {error}", file=sys.stderr)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
        3,
    )
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(
        zip([o.name for o in session.get_outputs()], session.run(None, feeds))
    ), "ONNX Runtime, optimisation off, f32"


def distance(ours, truth):
    """Worst relative L2 over the floating outputs; None when an output is missing."""
    worst = 0.0
    for name, b in truth.items():
        if not np.issubdtype(b.dtype, np.floating):
            continue
        a = ours.get(name)
        if a is None or a.shape != b.shape:
            return None
        a, b = a.astype(np.float64), b.astype(np.float64)
        worst = max(worst, float(np.linalg.norm(a - b) / (np.linalg.norm(b) or 1)))
    return worst


def quartiles(values):
    low, middle, high = (float(v) for v in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"median": middle, "q1": low, "q3": high}


def measure(name, threads, args, hone):
    """All runtimes on one model at one number of threads: a list of rows."""
    import onnx

    path = find(name, args)
    model = onnx.load(path)
    feeds = model_inputs.make(model, name, shapes=SHAPES.get(name))
    del model
    feeds_path = args.work / f"{name}.npz"
    np.savez(feeds_path, **feeds)
    truth, source = oracle(path, feeds, hone)
    peers, rows = {}, {}
    for runtime in args.peers:
        rows[runtime] = {
            "model": name,
            "threads": threads,
            "runtime": runtime,
            "oracle": source,
            "shapes": {k: list(v.shape) for k, v in feeds.items()},
        }
        try:
            if runtime in FLAGS:
                engine = args.work / f"{name}.{runtime}.engine"
                hone.build(path, engine, "--shapes", hone_cli.shapes_flag(feeds), *FLAGS[runtime])
                peers[runtime] = HonePeer(hone, engine, threads)
            else:
                peers[runtime] = Peer(runtime, path, feeds_path, threads)
            rows[runtime]["error"] = distance(peers[runtime].outputs(feeds, args.work / "out.npz"), truth)
        except (RuntimeError, KeyError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            rows[runtime]["failed"] = str(error)
            peers.pop(runtime, None)
    slices, busy = take_turns(peers, args.rounds, args.slice)
    for peer in peers.values():
        peer.close()
    base = [s["p50"] for s in slices.get("onnxruntime", [])]
    for runtime, taken in slices.items():
        p50 = [s["p50"] for s in taken]
        rows[runtime] |= {
            "median_ms": quartiles(p50),
            "p90_ms": statistics.median(s["p90"] for s in taken),
            "runs": sum(s["runs"] for s in taken),
            "speed": quartiles([b / p for b, p in zip(base, p50)]) if base else None,
            "busy": busy,
        }
    return list(rows.values())


def show(row):
    """One line of the table."""
    head = f"{row['model']:22} {row['threads']:>2}  {row['runtime']:12}"
    if "failed" in row:
        return f"{head} {row['failed'][:110]}"
    m, s = row["median_ms"], row["speed"]
    speed = f"{s['median']:6.2f}x [{s['q1']:.2f}, {s['q3']:.2f}]" if s else "-".rjust(7)
    error = "-" if row["error"] is None else f"{row['error']:.1e}"
    return f"{head} {m['median']:9.3f} {m['q3'] - m['q1']:8.3f} {row['p90_ms']:9.3f}  {speed:22} {error:>8}" + (
        "  disturbed" if row["busy"] > 0.05 else ""
    )


def machine():
    """What the figures belong to, without names of hosts."""
    text = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    pick = lambda key: next((l.split(":", 1)[1].strip() for l in text.splitlines() if l.startswith(key)), "")
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8")
    return {
        "cpu": pick("model name") or platform.machine(),
        "cores": os.cpu_count(),
        "isa": [f for f in wanted if f in pick("flags").split()],
    }


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {' '.join(MODELS)}")
    args.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    args.add_argument("--rounds", type=int, default=12)
    args.add_argument("--slice", type=float, default=0.6, help="seconds of one runtime's turn")
    args.add_argument("--peers", default=",".join(RUNTIMES), help="which runtimes, with commas")
    args.add_argument(
        "--require", type=float, metavar="X", help="exit 1 when a hone row is below X times ONNX Runtime's speed"
    )
    args.add_argument("--hone", type=pathlib.Path, default=ROOT / "build" / "hone")
    args.add_argument("--graphs", type=pathlib.Path, default=ROOT / "build" / "graphs")
    args.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    args.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "peers")
    args.add_argument("--json", type=pathlib.Path, default=ROOT / "bench" / "results" / "peers.json", metavar="FILE")
    args = args.parse_args()
    args.peers = args.peers.split(",")
    wrong = set(args.peers) - set(RUNTIMES)
    if wrong:
        print(f"peers.py: no such runtime: {', '.join(sorted(wrong))}; known: {', '.join(RUNTIMES)}", file=sys.stderr)
        return 2
    hone = hone_cli.Hone(args.hone) if args.hone.exists() else None
    if any(p in FLAGS for p in args.peers) and not hone:
        print(
            f"peers.py: {args.hone} is not there; build it, or leave hone out with --peers onnxruntime,openvino",
            file=sys.stderr,
        )
        return 2
    args.work.mkdir(parents=True, exist_ok=True)
    import onnxruntime, openvino

    rows, slow = [], []
    print(
        f"{'model':22} {'th':>2}  {'runtime':12} {'median ms':>9} {'spread':>8} {'p90 ms':>9}  {'speed [quartiles]':22} {'error':>8}",
        flush=True,
    )
    for name in args.models or MODELS:
        for threads in map(int, args.threads.split(",")):
            for row in measure(name, threads, args, hone):
                rows.append(row)
                print(show(row), flush=True)
                if (
                    args.require
                    and row["runtime"] in FLAGS
                    and ("failed" in row or (row["speed"] and row["speed"]["median"] < args.require))
                ):
                    slow.append(row)
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(
        json.dumps(
            {
                "machine": machine(),
                "commit": commit,
                "onnxruntime": onnxruntime.__version__,
                "openvino": openvino.__version__,
                "rounds": args.rounds,
                "slice_s": args.slice,
                "rows": rows,
            },
            indent=1,
        )
        + "\n"
    )
    for row in slow:
        print(
            f"peers.py: below {args.require}x: {row['model']}, {row['threads']} threads, {row['runtime']}",
            file=sys.stderr,
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
