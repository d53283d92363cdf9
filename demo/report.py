"""The demo's result as one HTML page: page(result) -> text. No script, no font and no picture from elsewhere; light
and dark, phone to wide."""

import base64, html, io
from PIL import Image

import fashion

STYLE = """
:root { color-scheme: light dark; --page:#f6f6f3; --card:#fff; --ink:#1c1e21; --soft:#5d6269; --line:#e1e1dc; --ours:#0b7a5e; --theirs:#8d949c;
  --good:#0b7a5e; --bad:#b3261e; --heat:11,122,94; }
@media (prefers-color-scheme: dark) { :root { --page:#131517; --card:#1c1f22; --ink:#e8e8e4; --soft:#a0a6ad; --line:#30353a; --ours:#43c59e;
  --theirs:#767d86; --good:#43c59e; --bad:#ff8a80; --heat:67,197,158; } }
* { box-sizing: border-box; }
body { margin:0; background:var(--page); color:var(--ink); font:16px/1.5 system-ui, sans-serif; }
main { max-width:1120px; margin:0 auto; padding:24px 16px 64px; }
h1 { font-size:1.7rem; line-height:1.2; margin:8px 0 4px; } h2 { font-size:1.15rem; margin:0 0 4px; }
p { margin:4px 0 12px; } .soft, figcaption, th { color:var(--soft); } .soft { font-size:.92rem; }
section { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:18px; margin-top:18px; }
.verdict { display:inline-block; padding:4px 12px; border-radius:99px; color:var(--card); background:var(--good); font-weight:600; }
.verdict.bad { background:var(--bad); } .bad-text { color:var(--bad); } .good-text { color:var(--good); }
.facts { display:grid; grid-template-columns:repeat(auto-fit, minmax(210px, 1fr)); gap:12px; margin-top:18px; }
.fact { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:12px 14px; }
.fact b { display:block; font-size:1.45rem; line-height:1.25; font-variant-numeric:tabular-nums; } .fact span { color:var(--soft); font-size:.88rem; }
.scroll { overflow-x:auto; }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; }
th, td { padding:5px 10px 5px 0; text-align:right; border-bottom:1px solid var(--line); white-space:nowrap; }
th:first-child, td:first-child { text-align:left; } td.wrap { white-space:normal; min-width:16ch; overflow-wrap:anywhere; text-align:left; }
thead th { font-weight:500; font-size:.88rem; } tr:last-child td { border-bottom:0; }
.bar { display:grid; grid-template-columns:minmax(86px, 120px) 1fr; gap:8px; align-items:center; font-size:.9rem; margin:3px 0; }
.bar i { display:block; height:14px; border-radius:3px; background:var(--theirs); min-width:2px; } .bar.ours i { background:var(--ours); }
.bar div { display:flex; gap:8px; align-items:center; white-space:nowrap; } .group { margin:14px 0 0; font-weight:600; font-size:.95rem; }
.heat td, .heat th { text-align:center; padding:0; height:30px; min-width:34px; font-size:.82rem; border:1px solid var(--card); }
.heat th:first-child { text-align:right; padding-right:8px; }
.gallery { display:grid; grid-template-columns:repeat(auto-fill, minmax(74px, 1fr)); gap:10px; margin:10px 0; }
figure { margin:0; } figcaption { font-size:.78rem; line-height:1.3; margin-top:4px; }
.gallery img { width:100%; aspect-ratio:1; image-rendering:pixelated; background:#000; border-radius:6px; display:block; }
.text-line { margin:14px 0; } .text-line img { max-width:100%; height:auto; display:block; border-radius:4px; }
@media (max-width:560px) { section { padding:14px 12px; } td:first-child { white-space:normal; min-width:9em; } th, td { padding-right:8px; }
  .fact b { font-size:1.2rem; } .facts { grid-template-columns:1fr 1fr; } .heat td, .heat th { min-width:26px; height:26px; font-size:.7rem; } }
code { font-size:.9em; overflow-wrap:anywhere; }
"""

SHORT = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot")


def picture(image):
    """A PIL image or a u8 array as a data URI."""
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    data = io.BytesIO()
    image.save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def text(value):
    return html.escape(str(value))


def size(count):
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B"


def table(head, rows, kind=""):
    """Rows of ready-made HTML cells; a cell starting with '<t' is taken as it is."""
    cell = lambda tag, value: value if str(value).startswith("<t") else f"<{tag}>{value}</{tag}>"
    top = f"<thead><tr>{''.join(cell('th', h) for h in head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{''.join(cell('td', c) for c in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table class="{kind}">{top}<tbody>{body}</tbody></table></div>'


def bars(pairs, form):
    """Horizontal bars: (label, value, ours?)."""
    top = max(value for _, value, _ in pairs) or 1
    return "".join(
        f'<div class="bar{" ours" if ours else ""}"><span>{text(label)}</span><div><i style="width:{70 * value / top:.1f}%"></i>'
        f"<span>{form(value)}</span></div></div>"
        for label, value, ours in pairs
    )


def facts(result):
    c, b = result["classifier"], result["build"]
    one = [r for r in result["timings"] if r["batch"] == 1][-1]
    many = result["timings"][-1]
    items = [
        (f"{c['top1']:.2%}", f"top-1 on {c['images']:,} images; {c['top1_onnxruntime']:.2%} before"),
        (f"{c['error']['worst']:.1e}", "worst relative L2 distance from the f64 reference"),
        (
            f"{one['hone']['p50']:.3f} ms",
            f"median latency, batch 1, {one['threads']} threads; p99 {one['hone']['p99']:.3f} ms",
        ),
        (f"{one['speed']['median']:.2f}x", "ONNX Runtime's speed, batch 1, timed in turn"),
        (f"{many['hone']['per_s']:,.0f}/s", f"images, batch {many['batch']}, {many['threads']} threads"),
        (size(c["memory_bytes"]), "peak memory of one run"),
        (size(b["engine_bytes"]), f"engine; the model has {size(b['model_bytes'])}"),
    ]
    if b["bytes_not_moved"] and b["activation_bytes"]:
        items.append(
            (
                f"{b['bytes_not_moved'] / b['activation_bytes']:.0%}",
                "of the unfused graph's activation traffic not moved",
            )
        )
    return (
        '<div class="facts">'
        + "".join(f'<div class="fact"><b>{text(v)}</b><span>{text(label)}</span></div>' for v, label in items)
        + "</div>"
    )


def answers(result):
    c = result["classifier"]
    rows = [
        ("top-1", f"{c['top1_onnxruntime']:.2%}", f"{c['top1']:.2%}"),
        ("other answer than ONNX Runtime", "", len(c["flipped"])),
        (
            "distance from the reference, worst image",
            f"{c['error_onnxruntime']['worst']:.1e}",
            f"{c['error']['worst']:.1e}",
        ),
        ("distance from the reference, mean", f"{c['error_onnxruntime']['mean']:.1e}", f"{c['error']['mean']:.1e}"),
    ]
    low, high = c["top1_interval"]
    heat = []
    for i, row in enumerate(c["confusion"]):
        total = max(1, sum(row))
        heat.append(
            [f"<th>{text(fashion.CLASSES[i])}</th>"]
            + [
                f'<td style="background:rgba(var(--heat),{0.75 * (n / total) ** 0.5:.2f})" title="{text(fashion.CLASSES[i])} taken for '
                f'{text(fashion.CLASSES[j])}: {n}">{n or ""}</td>'
                for j, n in enumerate(row)
            ]
        )
    head = ["", *(f'<th title="{text(name)}">{short}</th>' for name, short in zip(fashion.CLASSES, SHORT))]
    return f"""<section><h2>Answers</h2><p class="soft">{c["images"]:,} Fashion-MNIST test images. ONNX Runtime runs the original with its optimisation off.
Distances are relative L2 of the logits to Hone's reference in f64 arithmetic, on {c["reference_images"]:,} images. The 95 % interval of the top-1 share is
{low:.2%} to {high:.2%}.</p>{table(["", "ONNX Runtime", "Hone"], rows)}
<h2 style="margin-top:20px">What is taken for what</h2><p class="soft">Rows are the true class, columns Hone's answer.</p>{table(head, heat, "heat")}</section>"""


def speed(result):
    parts = []
    for row in result["timings"]:
        threads = f"{row['threads']} thread{'s' * (row['threads'] > 1)}"
        s = row["speed"]
        parts.append(
            f'<p class="group">{threads}, batch {row["batch"]}: {s["median"]:.2f}x ONNX Runtime <span class="soft">(quartiles {s["q1"]:.2f} to '
            f"{s['q3']:.2f})</span></p>"
        )
        parts.append(
            bars(
                [
                    ("Hone p50", row["hone"]["p50"], True),
                    ("ORT p50", row["onnxruntime"]["p50"], False),
                    ("Hone p99", row["hone"]["p99"], True),
                    ("ORT p99", row["onnxruntime"]["p99"], False),
                ],
                lambda v: f"{v:.3f} ms",
            )
        )
    keys = (("p50", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9"))
    rows = []
    for row in result["timings"]:
        for who, label in (("hone", "Hone"), ("onnxruntime", "ONNX Runtime")):
            rows.append(
                [
                    f"{label}, {row['threads']} thr., batch {row['batch']}",
                    *(f"{row[who][key]:.3f}" for key, _ in keys),
                    f"{row[who]['per_s']:,.0f}",
                ]
            )
    busy = max(row["busy"] for row in result["timings"])
    note = (
        f' <span class="bad-text">Other programs used {busy:.0%} of the processors meanwhile: trust the ratios, not the times.</span>'
        if busy > 0.05
        else ""
    )
    return f"""<section><h2>Speed</h2><p class="soft">Both runtimes take turns of half a second; a ratio comes from each round. ORT is ONNX Runtime with all
optimisation on.{note}</p>{"".join(parts)}<h2 style="margin-top:20px">Latency in milliseconds, images per second</h2>
{table(["", *(label for _, label in keys), "images/s"], rows)}</section>"""


def fusions(result):
    b = result["build"]
    if not b["fusions"]:
        return ""
    rows = [
        (
            text(r["rule"]),
            r["count"],
            r["nodes"],
            size(r["bytes"]),
            f'<td class="wrap soft">{text(r["example"])}</td>',
        )
        for r in b["fusions"]
    ]
    layers = f" became {b['layers']} layers" if b["layers"] else ""
    whole = f" In all {size(b['bytes_not_moved'])} an inference." if b["bytes_not_moved"] is not None else ""
    return f"""<section><h2>Fusions</h2><p class="soft">{b["nodes"]} nodes{layers}; the build took {b["build_s"]:.2f} s. Bytes are activations that no longer go
through memory, batch 1.{whole}</p>{table(["rule", "times", "nodes", "bytes not moved", '<th style="text-align:left">first one</th>'], rows)}</section>"""


def gallery(result):
    def figures(right):
        return "".join(
            f'<figure><img src="{s["picture"]}" alt="{text(s["label"])}"><figcaption>{text(s["answer"])}'
            + ("" if right else f"<br>is: {text(s['label'])}")
            + "</figcaption></figure>"
            for s in result["samples"]
            if s["right"] == right
        )

    alike = "" if result["classifier"]["flipped"] else "; the original errs alike"
    return f"""<section><h2>Images</h2><p class="soft">The first test images with a right answer.</p><div class="gallery">{figures(True)}</div>
<p class="soft">The first with a wrong one{alike}.</p><div class="gallery">{figures(False)}</div></section>"""


def reading(result):
    o = result.get("ocr")
    if not o:
        return ""
    lines = []
    for line in o["lines"]:
        same = line["hone"] == line["onnxruntime"]
        lines.append(
            f'<div class="text-line"><img src="{line["picture"]}" alt="{text(line["text"])}"><code>{text(line["hone"])}</code> <span class="soft">'
            f'<span class="{"good-text" if same else "bad-text"}">{"as ONNX Runtime reads it" if same else "ONNX Runtime: " + text(line["onnxruntime"])}</span>, '
            f"{line['edits']} edits from the text, distance from the reference {line['error']:.1e}</span></div>"
        )
    b = o["build"]
    return f"""<section><h2>Reading text</h2><p class="soft">PP-OCRv4's recogniser out of the PyPI package <code>{text(o["package"])}</code> ({text(o["licence"])}):
{b["nodes"]} nodes, engine {size(b["engine_bytes"])}, built in {b["build_s"]:.2f} s. One engine reads lines of any width.</p>{"".join(lines)}</section>"""


def page(result):
    """The whole page."""
    wrong, m = result["wrong"], result["machine"]
    if wrong:
        head = (
            '<span class="verdict bad">differs from the original</span><ul>'
            + "".join(f"<li>{text(s)}</li>" for s in wrong)
            + "</ul>"
        )
    else:
        head = '<span class="verdict">agrees with the original</span>'
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Hone: demo report</title>
<style>{STYLE}</style></head><body><main>
<h1>A ResNet compiled by Hone</h1>
<p class="soft">Fashion-MNIST classifier, f32, on {text(m["cpu"])}, {m["cores"]} cores ({text(", ".join(m["isa"]) or "no vector extensions")}).</p>
{head}
{facts(result)}
{answers(result)}
{speed(result)}
{fusions(result)}
{gallery(result)}
{reading(result)}
<p class="soft">ONNX Runtime {text(m["onnxruntime"])}. The same figures are in report.json beside this page.</p>
</main></body></html>
"""
