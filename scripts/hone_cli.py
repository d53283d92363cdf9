"""The hone command line for our Python tools: runs it, reads its --json. Field names of that JSON stand in FIELDS and
nowhere else.

    hone = Hone("build/hone")
    report = hone.bench("model.engine", "--iterations", 100)
    report.number("bench.p50_ms")
"""

import json, pathlib, subprocess, tempfile
import numpy as np

# our name -> where it stands in the JSON of the command before the dot (docs/json.md): keys joined by dots
FIELDS = {
    "check.ok": "ok",
    "check.problems": "problems",
    "build.engine_bytes": "engine_bytes",
    "build.seconds": "build_seconds",
    "build.nodes_before": "nodes_before",
    "build.layers": "layers",  # list
    "build.fusions": "ledger",  # list of rows
    "build.bytes_not_moved": "bytes_not_moved",
    "build.activation_bytes": "activation_bytes_unfused",
    "fusion.rule": "rule",  # within a row of build.fusions
    "fusion.nodes": "nodes",  # list of node names
    "fusion.bytes": "bytes_not_moved",
    "bench.iterations": "iterations",
    "bench.p50_ms": "latency_ms.p50",
    "bench.p90_ms": "latency_ms.p90",
    "bench.p95_ms": "latency_ms.p95",
    "bench.p99_ms": "latency_ms.p99",
    "bench.p999_ms": "latency_ms.p99_9",
    "bench.throughput": "runs_per_s",
    "bench.arena_bytes": "memory.arena_bytes",
    "bench.peak_rss_bytes": "memory.peak_rss_bytes",
    "run.peak_rss_bytes": "peak_rss_bytes",
}


class HoneFailed(RuntimeError):
    """The command ended with another code than 0; `code` holds it, the message its last line on stderr."""

    def __init__(self, command, code, stderr):
        lines = [line for line in stderr.strip().splitlines() if line.strip()]
        super().__init__(f"{' '.join(map(str, command))}: exit {code}: {lines[-1] if lines else 'nothing on stderr'}")
        self.code = code


class Report:
    """One JSON object of a command, or a row of one."""

    def __init__(self, document):
        self.document = document

    def get(self, name, default=None):
        """The value of one of FIELDS; `default` when the document has none (an older or newer hone)."""
        value = self.document
        for key in FIELDS[name].split("."):
            if not isinstance(value, dict) or value.get(key) is None:
                return default
            value = value[key]
        return value

    def number(self, name):
        """As get, for a number that the caller cannot do without."""
        value = self.get(name)
        if not isinstance(value, (int, float)):
            raise KeyError(f"the JSON of hone has no number at '{FIELDS[name]}' (for {name})")
        return value

    def rows(self, name):
        """As get, for a list of objects; empty when there is none."""
        value = self.get(name, [])
        return [Report(row) for row in value] if isinstance(value, list) else []


class Hone:
    def __init__(self, binary, timeout=600):
        self.binary, self.timeout = pathlib.Path(binary), timeout

    def call(self, *args, allow=(0,)):
        """Runs a command; returns (code, stdout, stderr). A code outside `allow` raises HoneFailed."""
        command = [str(self.binary), *map(str, args)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=self.timeout
        )
        if done.returncode not in allow:
            raise HoneFailed(["hone", *args], done.returncode, done.stderr)
        return done.returncode, done.stdout, done.stderr

    def json(self, *args, allow=(0,)):
        return Report(json.loads(self.call(*args, "--json", allow=allow)[1]))

    def check(self, model):
        return self.json("check", model, allow=(0, 3, 4))

    def build(self, model, engine, *flags):
        return self.json("build", model, "-o", engine, *flags)

    def bench(self, engine, *flags):
        return self.json("bench", engine, *flags)

    def run(self, model, feeds, *flags):
        """Runs a model or engine on {input: array}; returns {output: array}. Arrays of one rank more than the input's
        run once per index."""
        with tempfile.TemporaryDirectory(prefix="hone_run_") as folder:
            given, got = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.npz")
            np.savez(given, **feeds)
            self.call("run", model, "--inputs", given, "--outputs", got, *flags)
            with np.load(got) as file:
                return dict(file)

    def run_measured(self, model, inputs, outputs, *flags):
        """Runs a model or engine on files and returns the child's peak resident memory in bytes, as it saw it itself:
        what wait4 reports begins with the memory of the process that started it."""
        return self.json("run", model, "--inputs", inputs, "--outputs", outputs, *flags).number("run.peak_rss_bytes")


def shapes_flag(feeds):
    """The value of --shapes for {input: array}."""
    return ",".join(f"{name}:{'x'.join(map(str, value.shape)) or 'scalar'}" for name, value in feeds.items())
