"""The Fashion-MNIST test set as the demo's network wants it. Data: Debian's package dataset-fashion-mnist (MIT)."""

import gzip
import numpy as np

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
MEAN, STD = np.float32(0.2860), np.float32(0.3530)


def read_idx(path):
    """Reads an IDX file of bytes: two zero bytes, type 8, rank, then one big-endian u32 per dimension."""
    raw = gzip.open(path).read()
    shape = np.frombuffer(raw, ">u4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def load(folder, part="t10k"):
    """Images u8 [n,28,28] and labels u8 [n]; part is t10k (10,000) or train (60,000)."""
    return read_idx(folder / f"{part}-images-idx3-ubyte.gz"), read_idx(folder / f"{part}-labels-idx1-ubyte.gz")


def normalise(images):
    """u8 [n,28,28] to the input `image`, f32 [n,1,28,28]."""
    return (images[:, None].astype(np.float32) / 255 - MEAN) / STD


def top1(logits, labels):
    return float((logits.argmax(-1) == labels).mean())


def wilson(share, n, z=1.96):
    """The 95 % confidence interval of a share of n independent trials (Wilson's score interval)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return float(middle - half), float(middle + half)


def confusion(predicted, labels):
    """[true class, predicted class] counts."""
    table = np.zeros((10, 10), int)
    np.add.at(table, (labels, predicted), 1)
    return table
