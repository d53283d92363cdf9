#!/usr/bin/env python3
"""Trains the demo's classifier on Fashion-MNIST and exports it: train_fashion.py DATA OUT [--epochs N] [--seed N]

DATA is the folder of Debian's package dataset-fashion-mnist (/usr/share/datasets/fashion-mnist). OUT receives
fashion_resnet.onnx (what PyTorch's exporter writes, BatchNorm kept as nodes), check.npz (the first 64 test images and
this script's own logits for them) and train.json (settings and final figures).

The network is a ResNet of six basic blocks (32, 48 and 80 channels), about 0.33 million parameters, 55 million
multiply-adds an image. Training: SGD with Nesterov momentum and a one-cycle learning rate; random shifts, mirror
images and erased patches, all drawn on the device from one seed; the weights exported are an exponential moving
average. Nothing is selected by looking at the test images: the weights of the last epoch are exported, whatever they
score.

Input `image`: f32 [batch,1,28,28], (pixel / 255 - 0.2860) / 0.3530. Output `logits`: f32 [batch,10].
Needs torch, onnx and onnxscript; a GPU makes it two minutes instead of hours.
"""

import argparse, copy, gzip, json, os, pathlib, platform, time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import numpy as np, onnx, onnxscript.optimizer, torch
from torch import nn
import torch.nn.functional as F

MEAN, STD = 0.2860, 0.3530
CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def read_idx(path):
    """Reads an IDX file of bytes: two zero bytes, type 8, rank, then one big-endian u32 per dimension."""
    raw = gzip.open(path).read()
    shape = np.frombuffer(raw, ">u4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


class Block(nn.Module):
    """relu(bn(conv(relu(bn(conv(x))))) + shortcut(x)); the shortcut is a strided 1x1 convolution where the shape
    changes."""

    def __init__(self, src, dst, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(src, dst, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(dst)
        self.conv2 = nn.Conv2d(dst, dst, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(dst)
        self.shortcut = (
            nn.Identity()
            if src == dst and stride == 1
            else nn.Sequential(nn.Conv2d(src, dst, 1, stride, bias=False), nn.BatchNorm2d(dst))
        )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class FashionResNet(nn.Module):
    def __init__(self, widths=(32, 48, 80), blocks=2):
        super().__init__()
        self.stem = nn.Conv2d(1, widths[0], 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(widths[0])
        stages, src = [], widths[0]
        for i, w in enumerate(widths):
            for b in range(blocks):
                stages.append(Block(src, w, 2 if i > 0 and b == 0 else 1))
                src = w
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(src, 10)

    def forward(self, image):
        x = F.relu(self.bn(self.stem(image)))
        return self.head(self.pool(self.stages(x)).flatten(1))


def augment(x, gen):
    """Shifts by up to 2 pixels, mirrors half of the images, erases a square of up to 12 pixels in half of them."""
    n, dev = x.shape[0], x.device
    idx = torch.arange(28, device=dev)
    dy, dx = (torch.randint(0, 5, (n, 1), device=dev, generator=gen) for _ in range(2))
    cols = idx.expand(n, 28)
    mirror = torch.rand(n, 1, device=dev, generator=gen) < 0.5
    cols = torch.where(mirror, 27 - cols, cols) + dx
    rows = idx.expand(n, 28) + dy
    padded = F.pad(x[:, 0], (2, 2, 2, 2), value=-MEAN / STD)
    x = padded[torch.arange(n, device=dev)[:, None, None], rows[:, :, None], cols[:, None, :]]
    size = torch.randint(4, 13, (n, 1), device=dev, generator=gen)
    on = torch.rand(n, 1, 1, device=dev, generator=gen) < 0.5
    top, left = (torch.randint(0, 28, (n, 1), device=dev, generator=gen) - size // 2 for _ in range(2))
    in_rows = (idx >= top) & (idx < top + size)
    in_cols = (idx >= left) & (idx < left + size)
    hole = on & in_rows[:, :, None] & in_cols[:, None, :]
    return torch.where(hole, torch.zeros_like(x), x)[:, None]


@torch.no_grad()
def evaluate(model, images):
    model.eval()
    return torch.cat([model(images[i : i + 1000]) for i in range(0, len(images), 1000)])


def export(model, example, path):
    """Writes the ONNX file. The exporter's own optimizer would fold BatchNorm into the convolutions; folding is a
    thing the demo shows, so only its constant folding runs, and the tracebacks that it stores in every node are left
    out."""
    program = torch.onnx.export(
        model,
        (example,),
        dynamo=True,
        optimize=False,
        opset_version=20,
        input_names=["image"],
        output_names=["logits"],
        dynamic_shapes={"image": {0: torch.export.Dim("batch")}},
    )
    finish(program.model_proto, path)


def finish(model, path):
    onnxscript.optimizer.fold_constants(model)
    onnxscript.optimizer.remove_unused_nodes(model)
    for item in (
        *model.graph.node,
        *model.graph.input,
        *model.graph.output,
        *model.graph.value_info,
        *model.graph.initializer,
    ):
        del item.metadata_props[:]
    onnx.helper.set_model_props(
        model,
        {"classes": ",".join(CLASSES), "image": f"(pixel / 255 - {MEAN}) / {STD}", "data": "Fashion-MNIST (MIT)"},
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("data", type=pathlib.Path)
    args.add_argument("out", type=pathlib.Path)
    args.add_argument("--epochs", type=int, default=60)
    args.add_argument("--batch", type=int, default=500)
    args.add_argument("--lr", type=float, default=0.4)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument(
        "--budget-seconds", type=float, default=0, help="after 2 epochs, lower the number of epochs to what fits"
    )
    args = args.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    gen = torch.Generator(dev).manual_seed(args.seed)

    def load(part):
        x = torch.from_numpy(read_idx(args.data / f"{part}-images-idx3-ubyte.gz").copy()).to(dev)
        y = torch.from_numpy(read_idx(args.data / f"{part}-labels-idx1-ubyte.gz").copy()).to(dev)
        return ((x.float() / 255 - MEAN) / STD)[:, None], y.long()

    train_x, train_y = load("train")
    test_x, test_y = load("t10k")
    model = FashionResNet().to(dev).to(memory_format=torch.channels_last)
    average = copy.deepcopy(model)
    parameters = sum(p.numel() for p in model.parameters())
    steps = len(train_x) // args.batch
    epochs = args.epochs
    decay, plain = [], []
    for p in model.parameters():
        (decay if p.ndim > 1 else plain).append(p)
    opt = torch.optim.SGD(
        [{"params": decay, "weight_decay": 5e-4}, {"params": plain, "weight_decay": 0}],
        lr=0.0,
        momentum=0.9,
        nesterov=True,
    )
    live, kept = ([v for v in m.state_dict().values() if v.dtype.is_floating_point] for m in (model, average))
    start, epoch, step, first = time.time(), 0, 0, 0.0
    while epoch < epochs:
        model.train()
        order = torch.randperm(len(train_x), device=dev, generator=gen)
        total = torch.zeros((), device=dev)
        for i in range(steps):
            t = (epoch * steps + i) / (epochs * steps)
            rate = args.lr * (t / 0.15 if t < 0.15 else 0.5 * (1 + np.cos(np.pi * (t - 0.15) / 0.85)))
            for group in opt.param_groups:
                group["lr"] = rate
            pick = order[i * args.batch : (i + 1) * args.batch]
            x = augment(train_x[pick], gen).to(memory_format=torch.channels_last)
            with torch.autocast(dev, torch.bfloat16, enabled=dev == "cuda"):
                loss = F.cross_entropy(model(x).float(), train_y[pick], label_smoothing=0.05)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
            step += 1
            with torch.no_grad():
                torch._foreach_lerp_(kept, live, 1 - min(0.998, step / (step + 10)))
        epoch += 1
        total = total.item() / steps
        if epoch == 1:
            first = time.time()
        if epoch == 2 and args.budget_seconds:
            epochs = max(10, min(epochs, int(args.budget_seconds / (time.time() - first))))
            print(f"epochs set to {epochs}", flush=True)
        if epoch % 5 == 0 or epoch == epochs or epoch < 3:
            right = (evaluate(average, test_x).argmax(1) == test_y).float().mean().item()
            print(f"epoch {epoch:3d} loss {total:.4f} test top-1 {right:.4f} {time.time() - start:.0f} s", flush=True)
    seconds = time.time() - start

    average.eval()
    logits = evaluate(average, test_x)
    train_logits = evaluate(average, train_x)
    report = {
        "epochs": epochs,
        "batch": args.batch,
        "lr": args.lr,
        "seed": args.seed,
        "parameters": parameters,
        "train_seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if dev == "cuda" else platform.processor(),
        "torch": torch.__version__,
        "train_top1": (train_logits.argmax(1) == train_y).float().mean().item(),
        "test_top1": (logits.argmax(1) == test_y).float().mean().item(),
        "test_loss": F.cross_entropy(logits, test_y).item(),
        "test_top1_per_class": [(logits.argmax(1) == test_y)[test_y == c].float().mean().item() for c in range(10)],
    }
    print(json.dumps(report, indent=1), flush=True)
    (args.out / "train.json").write_text(json.dumps(report, indent=1))
    cpu = average.cpu().to(memory_format=torch.contiguous_format).eval()
    torch.save(cpu.state_dict(), args.out / "state.pt")
    with torch.no_grad():
        check = test_x[:64].cpu().contiguous()
        np.savez(args.out / "check.npz", image=check.numpy(), logits=cpu(check).numpy())
    export(cpu, check[:2], args.out / "fashion_resnet.onnx")


if __name__ == "__main__":
    main()
