#!/usr/bin/env python3
"""The demo: a real model checked, compiled, run and compared with the original: run_demo.py

1. demo/fashion_resnet.onnx is checked and built into an engine; the fusion ledger is printed.
2. The engine classifies the 10,000 Fashion-MNIST test images; so does ONNX Runtime with its optimisation off, and
   Hone's reference backend
   the first 1,000 (it computes in f64 and takes its time).
3. Engine and ONNX Runtime are timed in turn (bench/peers.py), so that what disturbs the machine disturbs both.
4. PP-OCRv4's text recogniser, taken out of a PyPI package (scripts/zoo.py), reads rendered lines of text of different
   widths.

What came out stands in the terminal, in OUT/report.json and in OUT/report.html, a page that needs no network. Exit 1
when an answer differs more than it may: relative L2 above 1e-4 for any image or line, other text than ONNX Runtime
reads, or another top-1."""

import argparse, json, os, pathlib, shutil, statistics, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]
import numpy as np, onnx, onnxruntime
import fashion, hone_cli, ocr, peers, report, zoo

TOLERANCE = 1e-4
MODEL = HERE / "fashion_resnet.onnx"


def say(text=""):
    print(text, flush=True)


def heading(text):
    say(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def onnx_runtime(path):
    """A session with optimisation off: the model as it was given to us."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
        3,
    )
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def relative_l2(ours, truth):
    """Per row: |a - b| / |b|."""
    a, b = ours.reshape(len(ours), -1).astype(np.float64), truth.reshape(len(truth), -1).astype(np.float64)
    return np.linalg.norm(a - b, axis=1) / np.maximum(np.linalg.norm(b, axis=1), 1e-30)


def ledger(built):
    """The build's fusions by rule: count, nodes, bytes not moved."""
    rules = {}
    for row in built.rows("build.fusions"):
        rule = rules.setdefault(row.get("fusion.rule", "?"), {"count": 0, "nodes": 0, "bytes": 0, "example": ""})
        nodes = row.get("fusion.nodes", [])
        rule["count"] += 1
        rule["nodes"] += len(nodes)
        rule["bytes"] += row.get("fusion.bytes", 0) or 0
        rule["example"] = rule["example"] or " + ".join(map(str, nodes[:4]))
    return [{"rule": k, **v} for k, v in sorted(rules.items(), key=lambda item: -item[1]["bytes"])]


def build(hone, model, engine, flags):
    """check and build; a dict for the report."""
    checked = hone.check(model)
    if not checked.get("check.ok", False):
        raise hone_cli.HoneFailed(["hone", "check", str(model)], 3, json.dumps(checked.get("check.problems", [])))
    start = time.monotonic()
    built = hone.build(model, engine, *flags)
    wall = time.monotonic() - start
    return {
        "model_bytes": model.stat().st_size,
        "engine_bytes": engine.stat().st_size,
        "build_s": built.get("build.seconds") or wall,
        "nodes": built.get("build.nodes_before") or len(onnx.load(model).graph.node),
        "layers": len(built.rows("build.layers")) or None,
        "fusions": ledger(built),
        "bytes_not_moved": built.get("build.bytes_not_moved"),
        "activation_bytes": built.get("build.activation_bytes"),
    }


def classify(hone, engine, images, labels, args):
    """Engine, ONNX Runtime and reference on the test images."""
    x = fashion.normalise(images)
    work, runs = args.out / "work", x[:, None]  # one run per image: [n, batch 1, 1, 28, 28]
    start = time.monotonic()
    ours = hone.run(engine, {"image": runs})["logits"].reshape(len(x), 10)
    ours_s = time.monotonic() - start
    session = onnx_runtime(MODEL)
    start = time.monotonic()
    theirs = np.concatenate([session.run(None, {"image": one})[0] for one in runs])
    theirs_s = time.monotonic() - start
    n = min(args.reference, len(x))
    start = time.monotonic()
    truth = hone.run(MODEL, {"image": runs[:n]}, "--backend", "ref")["logits"].reshape(n, 10)
    truth_s = time.monotonic() - start
    np.savez(work / "one.npz", image=x[:1])
    memory = hone.run_measured(engine, work / "one.npz", work / "one.out.npz")
    ours_error, theirs_error = relative_l2(ours[:n], truth), relative_l2(theirs[:n], truth)
    predicted, flipped = ours.argmax(1), np.flatnonzero(ours.argmax(1) != theirs.argmax(1))
    top = np.sort(theirs, 1)
    low, high = fashion.wilson(fashion.top1(ours, labels), len(x))
    return {
        "images": len(x),
        "reference_images": n,
        "hone_s": ours_s,
        "onnxruntime_s": theirs_s,
        "reference_s": truth_s,
        "memory_bytes": memory,
        "top1": fashion.top1(ours, labels),
        "top1_interval": [low, high],
        "top1_onnxruntime": fashion.top1(theirs, labels),
        "top1_reference": fashion.top1(truth, labels[:n]),
        "top1_same_images": fashion.top1(ours[:n], labels[:n]),
        "error": {"worst": float(ours_error.max()), "mean": float(ours_error.mean())},
        "error_onnxruntime": {"worst": float(theirs_error.max()), "mean": float(theirs_error.mean())},
        "distance": float(relative_l2(ours, theirs).max()),
        "flipped": [{"image": int(i), "margin": float(top[i, -1] - top[i, -2])} for i in flipped],
        "per_class": [float((predicted == labels)[labels == c].mean()) for c in range(10)],
        "confusion": fashion.confusion(predicted, labels).tolist(),
    }, predicted


def timings(hone, engine, args):
    """Latency at batch 1 for 1 and all threads, throughput at batch 64, Hone and ONNX Runtime in turn."""
    rows, work = [], args.out / "work"
    cases = [(1, t) for t in sorted({1, os.cpu_count() or 1})] + [(64, os.cpu_count() or 1)]
    for batch, threads in cases:
        feeds = {
            "image": fashion.normalise(np.zeros((batch, 28, 28), np.uint8))
            + np.random.default_rng(1).standard_normal((batch, 1, 28, 28), np.float32)
        }
        np.savez(work / "bench.npz", **feeds)
        pair = {
            "hone": peers.HonePeer(hone, engine, threads, "--shapes", hone_cli.shapes_flag(feeds)),
            "onnxruntime": peers.Peer("onnxruntime", MODEL, work / "bench.npz", threads),
        }
        slices, busy = peers.take_turns(pair, args.rounds, args.slice)
        for peer in pair.values():
            peer.close()
        row = {"batch": batch, "threads": threads, "busy": busy}
        for name, taken in slices.items():
            row[name] = {
                key: statistics.median(s[key] for s in taken) for key in ("p50", "p90", "p95", "p99", "p999", "per_s")
            }
            row[name]["per_s"] *= batch
            row[name]["runs"] = sum(s["runs"] for s in taken)
        row["speed"] = peers.quartiles([b["p50"] / a["p50"] for a, b in zip(slices["hone"], slices["onnxruntime"])])
        rows.append(row)
    return rows


def read_lines(hone, args):
    """PP-OCRv4's recogniser on lines of different widths: one engine, dynamic shapes."""
    args.zoo.mkdir(parents=True, exist_ok=True)
    entry = next(m for m in zoo.MODELS if m.name == "pp_ocr_v4_rec")
    path = zoo.fetch(entry, args.zoo)
    characters = ocr.alphabet(onnx.load(path))
    engine = args.out / "work" / "pp_ocr_v4_rec.engine"
    built = build(
        hone,
        path,
        engine,
        ("--min-shapes", "x:1x3x48x32", "--opt-shapes", "x:1x3x48x480", "--max-shapes", "x:1x3x48x1280"),
    )
    session, lines = onnx_runtime(path), []
    for text in ocr.LINES:
        image = ocr.render(text)
        x = ocr.tensor(image)
        theirs = session.run(None, {"x": x})[0]
        ours = next(iter(hone.run(engine, {"x": x}).values()))
        truth = next(iter(hone.run(path, {"x": x}, "--backend", "ref").values()))
        read, expected = ocr.decode(ours[0], characters), ocr.decode(theirs[0], characters)
        lines.append(
            {
                "text": text,
                "hone": read,
                "onnxruntime": expected,
                "width": image.width,
                "edits": ocr.edit_distance(read, text),
                "error": float(relative_l2(ours, truth)[0]),
                "error_onnxruntime": float(relative_l2(theirs, truth)[0]),
                "picture": report.picture(image),
            }
        )
    return {
        "package": entry.package,
        "licence": entry.licence,
        "sha256": entry.sha256,
        "build": built,
        "lines": lines,
    }


def samples(images, labels, predicted, count=12):
    """Pictures for the report: the first right and the first wrong answers."""
    rows = []
    for right in (True, False):
        for i in np.flatnonzero((predicted == labels) == right)[:count]:
            rows.append(
                {
                    "index": int(i),
                    "right": right,
                    "label": fashion.CLASSES[labels[i]],
                    "answer": fashion.CLASSES[predicted[i]],
                    "picture": report.picture(images[i]),
                }
            )
    return rows


def verdict(result):
    """What may not be: a list of sentences, empty when all is well."""
    c, wrong = result["classifier"], []
    if c["error"]["worst"] > TOLERANCE:
        wrong.append(
            f"logits differ from the reference by {c['error']['worst']:.1e} relative L2, more than {TOLERANCE:.0e}"
        )
    if c["top1"] != c["top1_onnxruntime"]:
        wrong.append(f"top-1 is {c['top1']:.2%}, the original's {c['top1_onnxruntime']:.2%}")
    for line in (result.get("ocr") or {}).get("lines", []):
        if line["hone"] != line["onnxruntime"]:
            wrong.append(f"'{line['text']}' is read as '{line['hone']}', by ONNX Runtime as '{line['onnxruntime']}'")
        if line["error"] > TOLERANCE:
            wrong.append(f"'{line['text']}': probabilities differ from the reference by {line['error']:.1e}")
    return wrong


def size(count):
    """Bytes for people."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B"


def print_build(name, b):
    layers = f" -> {b['layers']} layers" if b["layers"] else ""
    say(
        f"  {name}: {b['nodes']} nodes{layers}, model {size(b['model_bytes'])}, engine {size(b['engine_bytes'])}, built in {b['build_s']:.2f} s"
    )


def print_result(result):
    c, b = result["classifier"], result["build"]
    heading("Fusions (bytes of activations an inference no longer moves)")
    for rule in b["fusions"]:
        say(f"  {rule['count']:>4} x {rule['rule']:36} {rule['nodes']:>4} nodes {size(rule['bytes']):>12}")
    if b["bytes_not_moved"] is not None:
        share = (
            f", {b['bytes_not_moved'] / b['activation_bytes']:.0%} of the unfused graph's traffic"
            if b["activation_bytes"]
            else ""
        )
        say(f"  in all {size(b['bytes_not_moved'])}{share}")
    heading(f"Answers on {c['images']:,} test images")
    say(f"  {'':34}{'ONNX Runtime':>14}{'Hone':>14}")
    say(
        f"  {'top-1, before and after':34}{c['top1_onnxruntime']:>14.2%}{c['top1']:>14.2%}   95 % interval {c['top1_interval'][0]:.2%} to {c['top1_interval'][1]:.2%}"
    )
    say(f"  {'other answer than ONNX Runtime':34}{'':>14}{len(c['flipped']):>14}")
    say(
        f"  {'error to f64 reference, worst':34}{c['error_onnxruntime']['worst']:>14.1e}{c['error']['worst']:>14.1e}   relative L2, {c['reference_images']:,} images"
    )
    say(f"  {'error to f64 reference, mean':34}{c['error_onnxruntime']['mean']:>14.1e}{c['error']['mean']:>14.1e}")
    heading("Speed, in turn")
    say(f"  {'':34}{'ONNX Runtime':>14}{'Hone':>14}{'speed':>10}")
    for row in result["timings"]:
        ours, theirs = row["hone"], row["onnxruntime"]
        name = f"{row['threads']} thread{'s' * (row['threads'] > 1)}, batch {row['batch']}"
        if row["batch"] == 1:
            for key, label in (("p50", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9")):
                speed = f"{row['speed']['median']:>9.2f}x" if key == "p50" else ""
                say(f"  {name + ', ' + label + ' ms':34}{theirs[key]:>14.3f}{ours[key]:>14.3f}{speed}")
        speed = f"{row['speed']['median']:>9.2f}x" if row["batch"] > 1 else ""
        say(f"  {name + ', images/s':34}{theirs['per_s']:>14,.0f}{ours['per_s']:>14,.0f}{speed}")
    say(f"  {'peak memory of one run':34}{'':>14}{size(c['memory_bytes']):>14}")
    if max(row["busy"] for row in result["timings"]) > 0.05:
        say("  other programs were busy on this machine meanwhile: trust the ratios, not the times")
    if result.get("ocr"):
        heading(f"Text recognition, PP-OCRv4 from {result['ocr']['package']}")
        print_build("pp_ocr_v4_rec", result["ocr"]["build"])
        for line in result["ocr"]["lines"]:
            say(
                f"  {line['hone']:50} {'as ONNX Runtime' if line['hone'] == line['onnxruntime'] else 'DIFFERS'}, {line['edits']} edits from the text, error {line['error']:.1e}"
            )


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--hone", type=pathlib.Path, default=ROOT / "build" / "hone")
    args.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    args.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "demo")
    args.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    args.add_argument("--images", type=int, default=10000, help="test images to classify")
    args.add_argument("--reference", type=int, default=1000, help="how many of them with the reference backend too")
    args.add_argument("--rounds", type=int, default=6, help="turns of each runtime when timing")
    args.add_argument("--slice", type=float, default=0.5, help="seconds of a turn")
    args.add_argument("--no-ocr", action="store_true", help="leave out the model that has to be downloaded")
    args = args.parse_args()
    for path, remedy in ((args.hone, "bash scripts/build.sh"), (args.data, "apt-get install dataset-fashion-mnist")):
        if not path.exists():
            print(f"run_demo.py: {path} is not there ({remedy})", file=sys.stderr)
            return 2
    (args.out / "work").mkdir(parents=True, exist_ok=True)
    hone = hone_cli.Hone(args.hone)
    images, labels = (part[: args.images] for part in fashion.load(args.data))
    engine = args.out / "fashion_resnet.engine"
    try:
        heading("Check and build")
        result = {"build": build(hone, MODEL, engine, ())}
        print_build("fashion_resnet", result["build"])
        say(
            f"  running {len(images):,} images in the engine and in ONNX Runtime, {min(args.reference, len(images)):,} in the f64 reference ..."
        )
        result["classifier"], predicted = classify(hone, engine, images, labels, args)
        result["timings"] = timings(hone, engine, args)
        result["ocr"] = None if args.no_ocr else read_lines(hone, args)
    except (hone_cli.HoneFailed, KeyError, subprocess.TimeoutExpired) as error:
        print(f"run_demo.py: {error}", file=sys.stderr)
        return 1
    result["samples"] = samples(images, labels, predicted)
    result["machine"] = peers.machine() | {"onnxruntime": onnxruntime.__version__}
    result["wrong"] = verdict(result)
    print_result(result)
    (args.out / "report.json").write_text(json.dumps(result, indent=1) + "\n")
    (args.out / "report.html").write_text(report.page(result), encoding="utf-8")
    shutil.rmtree(args.out / "work")
    heading("Verdict")
    for sentence in result["wrong"] or ["every answer agrees with the original"]:
        say(f"  {sentence}")
    say(f"  {args.out / 'report.html'}")
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
