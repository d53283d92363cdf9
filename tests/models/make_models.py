#!/usr/bin/env python3
"""Writes the small models beside it that the error and end-to-end tests run: make_models.py

mlp.onnx         x f32[N,8] -> MatMul, Add, Relu, MatMul, Add, Softmax -> y f32[N,4]; symbolic batch
conv.onnx        image f32[1,3,16,16] -> two convolutions with BatchNormalization, a residual, pooling -> features f32[1,8]
mixed.onnx       ids i64[N,S], gain f32 scalar -> Gather, Mul -> vectors f32[N,S,6]; count i64
nonzero.onnx     x f32[N] -> NonZero -> where i64[1,?]: an output whose size depends on data
branch.onnx      flag bool scalar, x f32[2,64] -> If with a matrix of its own in each branch -> y f32[2,32]
unknown_op.onnx  two operators that nobody knows, in a domain of their own
bad_type.onnx    Add of f32 and i64: breaks the specification
"""

import pathlib
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
F, I = TensorProto.FLOAT, TensorProto.INT64


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs, constants=(), opsets=(("", 17),)):
    graph = helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(v, k) for k, v in constants])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=8, producer_name="tests/models"
    )
    onnx.save(model, HERE / f"{name}.onnx")


def main():
    rng = np.random.default_rng(7)
    draw = lambda *shape: (rng.standard_normal(shape) / 2).astype(np.float32)
    save(
        "mlp",
        [
            helper.make_node("MatMul", ["x", "w1"], ["h1"], "hidden/matmul"),
            helper.make_node("Add", ["h1", "b1"], ["h2"], "hidden/bias"),
            helper.make_node("Relu", ["h2"], ["h3"], "hidden/relu"),
            helper.make_node("MatMul", ["h3", "w2"], ["l1"], "head/matmul"),
            helper.make_node("Add", ["l1", "b2"], ["logits"], "head/bias"),
            helper.make_node("Softmax", ["logits"], ["y"], "head/softmax", axis=-1),
        ],
        [value("x", F, ["N", 8])],
        [value("y", F, ["N", 4])],
        [("w1", draw(8, 16)), ("b1", draw(16)), ("w2", draw(16, 4)), ("b2", draw(4))],
    )
    norm = lambda k: [(f"{k}_s", 1 + draw(8) / 4), (f"{k}_b", draw(8)), (f"{k}_m", draw(8)), (f"{k}_v", 1 + draw(8) ** 2)]
    save(
        "conv",
        [
            helper.make_node("Conv", ["image", "k1"], ["c1"], "stem/conv", pads=[1, 1, 1, 1], strides=[2, 2]),
            helper.make_node("BatchNormalization", ["c1", "n1_s", "n1_b", "n1_m", "n1_v"], ["c2"], "stem/norm"),
            helper.make_node("Relu", ["c2"], ["c3"], "stem/relu"),
            helper.make_node("Conv", ["c3", "k2"], ["c4"], "block/conv", pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", ["c4", "n2_s", "n2_b", "n2_m", "n2_v"], ["c5"], "block/norm"),
            helper.make_node("Add", ["c5", "c3"], ["c6"], "block/residual"),
            helper.make_node("Relu", ["c6"], ["c7"], "block/relu"),
            helper.make_node("GlobalAveragePool", ["c7"], ["c8"], "pool"),
            helper.make_node("Flatten", ["c8"], ["features"], "flatten"),
        ],
        [value("image", F, [1, 3, 16, 16])],
        [value("features", F, [1, 8])],
        [("k1", draw(8, 3, 3, 3)), ("k2", draw(8, 8, 3, 3))] + norm("n1") + norm("n2"),
    )
    save(
        "mixed",
        [
            helper.make_node("Gather", ["table", "ids"], ["picked"], "pick"),
            helper.make_node("Mul", ["picked", "gain"], ["vectors"], "scale"),
            helper.make_node("Size", ["ids"], ["count"], "count"),
        ],
        [value("ids", I, ["N", "S"]), value("gain", F, [])],
        [value("vectors", F, ["N", "S", 6]), value("count", I, [])],
        [("table", draw(10, 6))],
    )
    save("nonzero", [helper.make_node("NonZero", ["x"], ["where"], "find")], [value("x", F, ["N"])], [value("where", I, [1, "K"])])
    branch = lambda name, weights: helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["out"], f"{name}/matmul")],
        name,
        [],
        [value("out", F, [2, 32])],
        [numpy_helper.from_array(weights, "w")],
    )
    save(
        "branch",
        [
            helper.make_node("Relu", ["x0"], ["x"], "before"),
            helper.make_node(
                "If", ["flag"], ["y"], "choose", then_branch=branch("then", draw(64, 32)), else_branch=branch("else", draw(64, 32))
            ),
        ],
        [value("flag", TensorProto.BOOL, []), value("x0", F, [2, 64])],
        [value("y", F, [2, 32])],
    )
    save(
        "unknown_op",
        [
            helper.make_node("Frobnicate", ["x"], ["a"], "first", domain="com.example"),
            helper.make_node("Relu", ["a"], ["b"], "second"),
            helper.make_node("Defrobnicate", ["b"], ["y"], "third", domain="com.example"),
        ],
        [value("x", F, [2, 3])],
        [value("y", F, [2, 3])],
        opsets=(("", 17), ("com.example", 1)),
    )
    save(
        "bad_type",
        [helper.make_node("Add", ["x", "i"], ["y"], "mixed/add")],
        [value("x", F, [2, 3]), value("i", I, [2, 3])],
        [value("y", F, [2, 3])],
    )


if __name__ == "__main__":
    main()
