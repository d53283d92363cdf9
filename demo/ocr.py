"""Text lines for the OCR model and back: rendering with Pillow's own font, greedy CTC decoding.

PP-OCRv4's recogniser takes f32 [n,3,48,w], BGR, (pixel / 255 - 0.5) / 0.5, and answers probabilities [n,w/8,6625]:
class 0 is the blank, the others are the characters listed in the model's metadata, then a space."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LINES = (
    "Hone compiles an ONNX model into one engine file",
    "The quick brown fox jumps over 13 lazy dogs.",
    "Invoice no. 2026-1130: EUR 1,284.50",
    "Gate B27, boarding 14:35, seat 12C",
    "relative L2 below 1e-4 (f64 oracle)",
    "Ref: ISO 8601, 25 & 26 May, 50 % off",
)
HEIGHT, MARGIN = 48, 6


def render(text, size=30):
    """A line of text, dark on paper, as an RGB image 48 pixels high."""
    font = ImageFont.load_default(size)
    image = Image.new("RGB", (int(font.getlength(text)) + 2 * MARGIN, HEIGHT), (250, 250, 246))
    ImageDraw.Draw(image).text((MARGIN, HEIGHT // 2), text, fill=(25, 25, 35), font=font, anchor="lm")
    return image


def tensor(image):
    """An image as the model's input, [1,3,48,w]."""
    pixels = np.asarray(image, np.float32)[:, :, ::-1].transpose(2, 0, 1)[None]
    return np.ascontiguousarray((pixels / 255 - 0.5) / 0.5, np.float32)


def alphabet(model):
    """The characters by class, from the metadata of an onnx.ModelProto."""
    for entry in model.metadata_props:
        if entry.key == "character":
            return ["", *entry.value.splitlines(), " "]
    raise ValueError("the model carries no list of characters")


def decode(probabilities, characters):
    """[t, classes] to text: the likeliest class of each step, repeats merged, blanks dropped, outer spaces
    stripped."""
    best = probabilities.argmax(-1)
    return "".join(characters[c] for i, c in enumerate(best) if c and (i == 0 or c != best[i - 1])).strip()


def edit_distance(a, b):
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]
