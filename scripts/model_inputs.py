"""Seeded inputs for the models we test and time: make(model, name) -> {input: array}.

One rule covers most models; a row of SHAPES or VALUES says what it cannot know. The rule, for an input of the graph:

  f32, f16    standard normal, rounded to the type
  integers    whole numbers in [0, V), V the smallest first dimension of a table that a Gather reads with this input;
              without one, V = 2
  ... named *mask*        each row ones, then zeros for the last quarter, and at least one 1 (what a padded sentence
                          looks like)
  ... named token_type*   zeros in the first half of a row, ones in the second
  bool        fair coin

Symbolic and unset dimensions are 1, unless SHAPES or the caller's `dims` (symbol -> size) say otherwise.
"""

import numpy as np, onnx

SEED = 20

# Shapes of models whose inputs are free: what each is used with in practice, kept small enough for a test.
SHAPES = {
    "bert_base.script": {"input_ids": (1, 128), "attention_mask": (1, 128)},
    "pp_ocr_v4_det": {"x": (1, 3, 320, 320)},
    "pp_ocr_v4_rec": {"x": (1, 3, 48, 320)},
    "pp_ocr_v2_cls": {"x": (1, 3, 48, 192)},
    "minilm_l6_int8": {"input_ids": (2, 32), "attention_mask": (2, 32), "token_type_ids": (2, 32)},
    "minilm_l3": {"input_ids": (2, 32), "attention_mask": (2, 32)},
    "silero_vad": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_op15": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_ifless": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_half": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_sequence": {"input": (8, 576)},
    "captcha_crnn": {"image": (2, 3, 60, 160)},
    "ddddocr_rec": {"input1": (1, 1, 64, 160)},
    "rxnmap": {"atoms": (1, 40), "neighbors": (1, 40), "distances": (1, 40, 40), "roles": (1, 40)},
    "fashion_resnet": {"image": (4, 1, 28, 28)},
}

# Values that the rule would get wrong: (low, high) for a uniform range (whole numbers for integer inputs), one
# number, or the name of a function below. A detector shown noise answers "nothing" everywhere, with values so small
# that two correct f32 runs differ by 4e-4 relative: such models are shown what they look for.
VALUES = {
    "open_nsfw": {"input:0": (-110.0, 140.0)},  # bytes less the channel means
    "magika": {"bytes": (0, 257)},  # 256 is padding
    "ddddocr_det": {"images": (0.0, 255.0)},
    "ddddocr_rec": {"input1": (-1.0, 1.0)},
    "minilm_l6_int8": {"input_ids": (0, 30522)},  # its table comes out of a Mul
    "silero_vad": {"input": (-0.5, 0.5), "state": (-1.0, 1.0), "sr": 16000},
    "silero_vad_op15": {"input": (-0.5, 0.5), "state": (-1.0, 1.0), "sr": 16000},
    "silero_vad_ifless": {"input": (-0.5, 0.5), "state": (-1.0, 1.0), "sr": 16000},
    "silero_vad_half": {"input": (-0.5, 0.5), "state": (-1.0, 1.0)},
    "silero_vad_sequence": {"input": (-0.5, 0.5)},
    "basic_pitch": {"serving_default_input_2:0": "hiss"},
    "pp_ocr_v4_det": {"x": "page"},
    "pp_ocr_v4_rec": {"x": "page"},
    "pp_ocr_v2_cls": {"x": "page"},
    "wav2vec2.dynamo": {"input_values": (-1.0, 1.0)},
}


def declared(model):
    """The inputs a caller must give: name -> (numpy dtype, list of sizes, symbols or None). Initializers with an
    input entry are not."""
    stored = {t.name for t in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        if value.name not in stored:
            tensor = value.type.tensor_type
            dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]
            found[value.name] = (onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type), dims)
    return found


def vocabulary(model, name):
    """The number of rows of the smallest table that a Gather indexes with this input, through casts and reshapes; 0
    without one."""
    tables = {t.name: t.dims[0] for t in model.graph.initializer if t.dims}
    same, sizes = {name}, []
    for node in model.graph.node:  # in order of execution, so one pass follows a chain
        if (
            node.op_type in ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten")
            and node.input[0] in same
        ):
            same.add(node.output[0])
        if node.op_type == "Gather" and node.input[1] in same and node.input[0] in tables:
            sizes.append(tables[node.input[0]])
    return min(sizes, default=0)


def page(rng, shape):
    """Lines of letter-like strokes, dark on light, as an image of [-1, 1], shape [n, c, h, w]."""
    n, c, h, w = shape
    image = np.full((n, h, w), 0.9, np.float32)
    line = max(8, min(h - 8, 24))
    for b in range(n):
        for top in range(4, h - line + 1, 2 * line):
            left = 6 + int(rng.integers(0, 10))
            while left + line < w - 6:
                width = line // 2
                for _ in range(3):  # an upright, a bar or both make a letter
                    if rng.random() < 0.5:
                        x = left + int(rng.integers(0, width))
                        image[b, top : top + line, x : x + 3] = -0.9
                    else:
                        y = top + int(rng.integers(0, line - 3))
                        image[b, y : y + 3, left : left + width] = -0.9
                left += width + (line if rng.random() < 0.15 else line // 5)
    noise = rng.normal(0, 0.02, (n, c, h, w))
    return (image[:, None] + noise).astype(np.float32)


def hiss(rng, shape):
    """Noise whose power falls as 1 / frequency, shape [n, samples, 1], peak 0.9. Every octave then holds something: a
    model that takes the logarithm of a spectrum turns the rounding errors of an empty octave into differences that no
    tolerance should have to allow."""
    n, samples, _ = shape
    spectrum = np.fft.rfft(rng.standard_normal((n, samples)))
    sound = np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(spectrum.shape[1]))), samples)
    return (0.9 * sound / np.abs(sound).max())[..., None]


def one(rng, model, name, dtype, shape, values):
    """The array of one input."""
    if isinstance(values, tuple):
        low, high = values
        return (
            rng.integers(low, high, shape) if np.issubdtype(dtype, np.integer) else rng.uniform(low, high, shape)
        ).astype(dtype)
    if isinstance(values, str):
        return {"page": page, "hiss": hiss}[values](rng, shape).astype(dtype)
    if values is not None:
        return np.full(shape, values, dtype)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if not np.issubdtype(dtype, np.integer):
        return rng.standard_normal(shape).astype(dtype)
    if "mask" in name:
        width = shape[-1] if shape else 1
        return np.broadcast_to(np.arange(width) < max(1, width - width // 4), shape).astype(dtype)
    if name.startswith("token_type"):
        return np.broadcast_to(np.arange(shape[-1]) >= shape[-1] // 2, shape).astype(dtype)
    return rng.integers(0, vocabulary(model, name) or 2, shape).astype(dtype)


def make(model, name, seed=SEED, dims=None, batch=None, shapes=None):
    """Inputs for an onnx.ModelProto. `name` is its row in the tables above (unknown names are fine), `dims` sizes for
    symbols, `batch` the size of a free first dimension, `shapes` {input: shape} in place of SHAPES' row."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for key, (dtype, sizes) in declared(model).items():
        known = (shapes or SHAPES.get(name, {})).get(key)
        shape = list(known or [s if isinstance(s, int) and s > 0 else (dims or {}).get(s, 1) for s in sizes])
        if batch and sizes and not (isinstance(sizes[0], int) and sizes[0] > 0):
            shape[0] = batch
        feeds[key] = one(rng, model, key, dtype, tuple(shape), VALUES.get(name, {}).get(key))
    return feeds
