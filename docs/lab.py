"""A small laboratory: projects and runs that look like real training, to be looked at and photographed.

The values come from formulas with a fixed seed, so that two laboratories look the same.
"""

from __future__ import annotations

import math
import random
import struct
import time
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import orjson

#: Classes of the confusion matrix, and labels of the models.
_CLASSES = ("cat", "dog", "deer", "horse", "frog", "bird", "ship", "truck")
_HOUR = 3_600_000
_STEP = 25

_DIFF = """diff --git a/train.py b/train.py
index 3f1c2aa..9b04d1e 100644
--- a/train.py
+++ b/train.py
@@ -41,9 +41,12 @@ def train(model, loader, optimizer, scheduler):
     for step, (images, labels) in enumerate(loader):
         optimizer.zero_grad(set_to_none=True)
-        loss = criterion(model(images), labels)
-        loss.backward()
+        with torch.autocast("cuda", dtype=torch.bfloat16):
+            loss = criterion(model(images), labels)
+        loss.backward()
+        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
         optimizer.step()
         scheduler.step()
@@ -88,3 +91,4 @@ def main():
     parser.add_argument("--lr", type=float, default=0.1)
     parser.add_argument("--batch-size", type=int, default=256)
+    parser.add_argument("--clip", type=float, default=1.0)
"""
_PACKAGES = """# Python 3.11.9 (main, Apr  2 2026, 08:25:04) [GCC 12.2.0]

clearml == 2.0.2
numpy == 1.26.4
opencv-python-headless == 4.10.0.84
pillow == 10.4.0
pyyaml == 6.0.2
scikit-learn == 1.5.1
tensorboard == 2.17.1
torch == 2.4.0
torchvision == 0.19.0
tqdm == 4.66.5
"""
_CONFIGURATION = """data:
  root: s3://datasets/pets-37
  size: 224
  augment: [flip, crop, colour]
model:
  name: resnet50
  pretrained: true
schedule:
  kind: cosine
  warmup_steps: 200
"""


class Lab:
    """Fills a server by `client`, whose credentials are an admin's. `files` is the URL of the file server."""

    def __init__(self, client: httpx.Client, files: str, *, now: int | None = None) -> None:
        self._client = client
        self._files = files
        #: Epoch milliseconds.
        self._now = now or int(time.time() * 1000)
        self._random = random.Random(7)

    def fill(self, *, runs: int = 14) -> dict[str, str]:
        """Make everything; answers the ids of what a visitor looks at first: project, run, running, model, report."""
        pets = self._project("pets/classification", "ResNets on 37 breeds. Target: 93 % on validation.")
        self._project("pets/segmentation", "Masks of the same pictures.")
        speech = self._project("speech/transcription", "Conformers on call centre audio.")
        sweep = [self._run(pets, number) for number in range(runs)]
        running = self._run(pets, runs, status="in_progress")
        for number in range(3):
            self._run(speech, 40 + number, name=f"conformer-{'sml'[number]}")
        self._draft(pets)
        best, model = sweep[-1]
        report = self._report(pets, best)
        return {
            "project": pets,
            "run": best,
            "running": running[0],
            "model": model,
            "report": report,
            "second": sweep[1][0],
            "third": sweep[2][0],
            "sweep": ",".join(run for run, _ in sweep),
        }

    def _call(self, endpoint: str, **request: Any) -> dict[str, Any]:
        response = self._client.post(f"/{endpoint}", json=request)
        if response.status_code != 200:
            raise RuntimeError(f"{endpoint}: {response.text}")
        answered: dict[str, Any] = response.json()["data"]
        return answered

    def _events(self, events: list[dict[str, Any]]) -> None:
        for first in range(0, len(events), 5000):
            body = b"\n".join(map(orjson.dumps, events[first : first + 5000]))
            self._client.post("/events.add_batch", content=body).raise_for_status()

    def _project(self, name: str, description: str) -> str:
        return str(self._call("projects.create", name=name, description=description)["id"])

    def _upload(self, path: str, content: bytes) -> str:
        self._client.put(f"{self._files}{path}", content=content).raise_for_status()
        return f"{self._files}{path}"

    def _run(self, project: str, number: int, *, status: str = "completed", name: str = "") -> tuple[str, str]:
        """A run with all that a run can have: its id, and its model's."""
        chosen = self._parameters(number)
        hours = 2.6 + (number % 5) * 0.7
        begun = (
            self._now - int((number % 29 + 4) * 5.3 * _HOUR)
            if status != "in_progress"
            else self._now - int(1.4 * _HOUR)
        )
        ended = begun + int(hours * _HOUR)
        if status == "completed" and number % 7 == 5:
            status = "failed"
        name = name or f"resnet50 {chosen['Args']['optimizer']} lr={chosen['Args']['lr']}"
        task = self._call(
            "tasks.import_run",
            **{"source": f"lab/{project}/{number}", "name": name, "project": project, "status": status},
            **{"type": "training", "created": _iso(begun - 240_000), "started": _iso(begun)},
            **({} if status == "in_progress" else {"completed": _iso(ended)}),
            tags=[
                chosen["Args"]["optimizer"],
                *(["baseline"] if number == 0 else []),
                *(["best"] if number == 13 else []),
            ],
            comment="Cosine schedule, label smoothing and gradient clipping. Compare with the baseline."
            if number % 4 == 1
            else "",
            hyperparams=_sections(chosen),
            configuration={"training": {"name": "training", "value": _CONFIGURATION, "type": "YAML"}},
            script={
                **{"repository": "https://git.example.org/pets/classification.git", "branch": "clip-gradients"},
                **{"version_num": "4c1f0b6e2d9a7735c8e1b0a49f6d2e3710ab55c9", "entry_point": "train.py"},
                **{"working_dir": "src", "binary": "python3.11", "diff": _DIFF, "requirements": {"pip": _PACKAGES}},
            },
            runtime={
                **{"gpu_type": "NVIDIA A100-SXM4-80GB", "gpu_count": "2", "cpu_cores": "32", "memory_gb": "251.4"},
                **{"hostname": f"node-{number % 3 + 1:02}", "python_version": "3.11.9", "platform": "linux"},
            },
        )["id"]
        self._call("tasks.edit_runtime", task=task, remove=["imported_from", "import_position"], force=True)
        share = 0.62 if status == "in_progress" else 0.55 if status == "failed" else 1.0
        self._events(list(self._scalars(task, number, begun, hours, share)))
        self._events(list(self._log(task, begun, hours, share, failed=status == "failed")))
        self._events(list(self._samples(task, number, begun)))
        return task, self._model(project, task, name, number)

    def _parameters(self, number: int) -> dict[str, dict[str, Any]]:
        rates = (0.1, 0.03, 0.01, 0.003, 0.001)
        arguments = {
            **{"lr": rates[number % 5], "batch-size": 128 * 2 ** (number % 3), "epochs": 90, "seed": number},
            **{"optimizer": ("sgd", "adamw", "lamb")[number % 3], "weight-decay": round(1e-4 * (number % 4 + 1), 4)},
            **{"clip": 1.0, "label-smoothing": 0.1, "data": "/data/pets-37"},
        }
        return {"Args": arguments, "Augment": {"flip": 0.5, "crop": 224, "colour": 0.4, "mixup": 0.2}}

    def _scalars(self, task: str, number: int, begun: int, hours: float, share: float) -> Iterator[dict[str, Any]]:
        steps = int(1200 * share)
        speed = 0.9 + (number % 5) * 0.13
        floor = 0.16 + (number % 7) * 0.02
        for step in range(steps):
            iteration, at = step * _STEP, begun + int(hours * _HOUR * step / 1200)
            seen = step / 1200 * speed
            noise = self._random.gauss(0, 0.05)
            spike = 4.2 if step == 417 and number % 4 == 1 else 0.0
            loss = floor + 2.3 * math.exp(-4.2 * seen) + abs(noise) * math.exp(-1.4 * seen) + spike
            point = {"type": "training_stats_scalar", "task": task, "iter": iteration, "timestamp": at}
            yield {**point, "metric": "loss", "variant": "train", "value": loss}
            yield {
                **point,
                "metric": "learning rate",
                "variant": "lr",
                "value": 0.1 * (1 + math.cos(math.pi * step / 1200)) / 2,
            }
            yield {
                **point,
                "metric": "gradient norm",
                "variant": "total",
                "value": 0.3 + 3 * math.exp(-5 * seen) + abs(noise) * 3,
            }
            if step % 12 == 0:
                accuracy = 0.94 - floor / 3 - 0.8 * math.exp(-5 * seen) + noise / 6
                yield {
                    **point,
                    "metric": "loss",
                    "variant": "validation",
                    "value": loss * 1.12 + 0.03 + noise / 3 - spike,
                }
                for variant, value in (("top 1", accuracy), ("top 5", min(0.995, accuracy * 0.4 + 0.6))):
                    yield {**point, "metric": "accuracy", "variant": variant, "value": value}
            if step % 24 == 0:
                for gpu in range(2):
                    busy = 93 + 4 * math.sin(step / 9 + gpu) + self._random.gauss(0, 1.5)
                    yield {
                        **point,
                        "metric": ":monitor:gpu",
                        "variant": f"gpu_{gpu}_utilization",
                        "value": min(100.0, busy),
                    }
                    yield {
                        **point,
                        "metric": ":monitor:gpu",
                        "variant": f"gpu_{gpu}_mem_used_gb",
                        "value": 61 + gpu + math.sin(step),
                    }
                    yield {
                        **point,
                        "metric": ":monitor:gpu",
                        "variant": f"gpu_{gpu}_temperature",
                        "value": 58 + 9 * seen + gpu * 3,
                    }
                for variant, value in (("cpu_usage", 41 + 9 * math.sin(step / 30)), ("memory_used_gb", 88 + 20 * seen)):
                    yield {**point, "metric": ":monitor:machine", "variant": variant, "value": value}
        single = {"type": "training_stats_scalar", "task": task, "iter": -(2**31), "metric": "Summary"}
        yield {**single, "variant": "parameters (M)", "value": 25.6, "timestamp": begun}

    def _log(self, task: str, begun: int, hours: float, share: float, *, failed: bool) -> Iterator[dict[str, Any]]:
        def line(at: int, message: str, level: str = "info") -> dict[str, Any]:
            return {
                "type": "log",
                "task": task,
                "timestamp": at,
                "level": level,
                "worker": "node-01:gpu0",
                "msg": message,
            }

        yield line(
            begun, "\x1b[36mINFO\x1b[0m  Found 37 classes, 29,520 pictures for training and 3,669 for validation"
        )
        yield line(begun + 900, "\x1b[33mWARN\x1b[0m  12 pictures have no label, and are left out", "warning")
        epochs = int(90 * share)
        for epoch in range(1, epochs + 1):
            at = begun + int(hours * _HOUR * epoch / 90)
            loss, accuracy = 0.16 + 2 * math.exp(-epoch / 22), 0.92 - 0.8 * math.exp(-epoch / 18)
            bar = (
                f"epoch {epoch:>2}/90: 100%|{'█' * 24}| 231/231 [01:{41 + epoch % 9}<00:00, 2.27it/s, loss={loss:.3f}]"
            )
            yield line(at, bar)
            scores = f"\x1b[32mtop1={accuracy:.4f}\x1b[0m top5={accuracy * 0.4 + 0.6:.4f}"
            yield line(at + 900, f"\x1b[36mINFO\x1b[0m  epoch {epoch} validation {scores}")
        if failed:
            yield line(
                begun + int(hours * _HOUR * share),
                "\x1b[31mERROR\x1b[0m CUDA out of memory. Tried to allocate 2.44 GiB",
                "error",
            )

    def _samples(self, task: str, number: int, begun: int) -> Iterator[dict[str, Any]]:
        for iteration in (5_000, 15_000, 25_000):
            at = begun + iteration * 300
            matrix = [
                [self._random.randint(0, 9) if row != column else 80 + iteration // 2000 for column in range(8)]
                for row in range(8)
            ]
            trace = {"type": "heatmap", "z": matrix, "x": _CLASSES, "y": _CLASSES, "colorscale": "Blues"}
            layout = {
                "title": {"text": "Confusion"},
                "xaxis": {"title": {"text": "predicted"}},
                "yaxis": {"title": {"text": "true"}},
            }
            figure = orjson.dumps({"data": [trace], "layout": layout}).decode()
            plot = {"type": "plot", "task": task, "iter": iteration, "timestamp": at}
            yield {**plot, "metric": "confusion", "variant": "validation", "plot_str": figure}
            curve = {"x": [n / 20 for n in range(21)], "y": [1 - (n / 20) ** (6 + iteration / 4000) for n in range(21)]}
            figure = orjson.dumps(
                {
                    "data": [{"type": "scatter", "name": "all classes", **curve}],
                    "layout": {"title": {"text": "Precision over recall"}},
                }
            ).decode()
            yield {**plot, "metric": "precision", "variant": "validation", "plot_str": figure}
            for variant in range(4):
                url = self._upload(
                    f"/lab/{task}/{iteration}-{variant}.png", _picture(number * 7 + variant, iteration / 25_000)
                )
                picture = {"type": "training_debug_image", "task": task, "iter": iteration, "timestamp": at, "url": url}
                yield {
                    **picture,
                    "metric": "predictions",
                    "variant": f"picture {variant}",
                    "key": url.rpartition("/")[2],
                }

    def _model(self, project: str, task: str, name: str, number: int) -> str:
        weights = self._upload(f"/lab/{task}/best.pt", self._random.randbytes(20_000))
        model = self._call(
            "models.create",
            **{"name": f"{name} best", "uri": weights, "project": project, "task": task, "framework": "PyTorch"},
            **{"ready": number == 13, "labels": {label: n for n, label in enumerate(_CLASSES)}, "tags": ["resnet50"]},
            comment="The weights with the best validation accuracy.",
            metadata=[
                {"key": "top 1", "type": "float", "value": f"{0.88 + number / 300:.4f}"},
                {"key": "epoch", "value": "87"},
            ],
        )["id"]
        self._call("tasks.add_or_update_model", task=task, name="best", model=model, type="output")
        table = self._upload(f"/lab/{task}/errors.csv", b"picture,true,predicted\n17.jpg,cat,dog\n23.jpg,deer,horse\n")
        artifacts = [
            {
                **{"key": "errors", "type": "pandas", "uri": table, "content_size": 62, "hash": "9d0f4c" * 10 + "1a2b"},
                **{
                    "timestamp": self._now // 1000,
                    "type_data": {"preview": "picture true predicted\n17.jpg   cat  dog\n23.jpg   deer horse"},
                },
            },
            {
                **{
                    "key": "dataset",
                    "type": "custom",
                    "uri": "s3://datasets/pets-37/index.parquet",
                    "content_size": 48_211_004,
                },
                **{"timestamp": self._now // 1000, "hash": "77ab01" * 10 + "ffee"},
            },
        ]
        self._call("tasks.add_or_update_artifacts", task=task, artifacts=artifacts, force=True)
        return str(model)

    def _draft(self, project: str) -> None:
        parameters = _sections(self._parameters(2))
        self._call(
            "tasks.create", name="resnet50 with mixup 0.4", type="training", project=project, hyperparams=parameters
        )

    def _report(self, project: str, task: str) -> str:
        text = (
            "# Which learning rate?\n\nAll runs train a **ResNet-50** on 37 breeds for 90 epochs.\n\n"
            "| optimizer | best lr | top 1 |\n|---|---|---|\n| sgd | 0.1 | 0.921 |\n| adamw | 0.003 | 0.917 |\n\n"
            f"The [best run](/projects/{project}/tasks/{task}/scalars) uses SGD with a cosine schedule.\n"
        )
        return str(self._call("reports.create", name="Learning rates of ResNet-50", project=project, report=text)["id"])


def _sections(chosen: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, str]]]:
    return {
        section: {name: {"section": section, "name": name, "value": str(value)} for name, value in values.items()}
        for section, values in chosen.items()
    }


def _iso(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(milliseconds / 1000))


def _picture(seed: int, sharpness: float, size: int = 96) -> bytes:
    """A PNG of soft coloured blobs, which get sharper."""
    chance = random.Random(seed)
    blobs = [
        (chance.random(), chance.random(), 0.1 + 0.2 * chance.random(), [chance.random() for _ in "rgb"])
        for _ in range(5)
    ]
    rows = bytearray()
    for y in range(size):
        rows.append(0)
        for x in range(size):
            pixel = [0.12, 0.14, 0.18]
            for cx, cy, radius, colour in blobs:
                distance = math.hypot(x / size - cx, y / size - cy) / radius
                weight = 1 / (1 + distance ** (2 + 6 * sharpness))
                pixel = [value * (1 - weight) + part * weight for value, part in zip(pixel, colour, strict=True)]
            rows += bytes(min(255, int(value * 255)) for value in pixel)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")
    )
