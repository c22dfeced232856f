"""Writes W&B's `.wandb` files, and reads runs of them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from apiserver.transfer.importing.runs.model import Part, Position, Problem, Unmapped
from apiserver.transfer.importing.runs.wandb.run import WandbRun
from apiserver.transfer.importing.runs.wandb.runs import WandbFolder
from tests.transfer.importing.runs.test_mlflow import points_of
from tests.transfer.importing.runs.tfevents import Value, message


def run(start: int = 1_700_000_000, *more: tuple[int, Value]) -> bytes:
    """The record of a run that started then."""
    about: list[tuple[int, Value]] = [(1, "id7"), (3, "proj"), (8, "one"), (9, "note"), (10, "t"), *more]
    about.append((17, message((1, start))))
    return message((17, message(*about)))


RUN = run()
EXIT, FAILED = (message((18, message((1, code)))) for code in (0, 1))
TENSORBOARD = message((1, 9), (9, message((1, "logs"))))


def defined(name: str, step: str = "", *, sync: bool = True) -> bytes:
    """A record of `define_metric`."""
    options = message((3, 1), *([(1, 1)] if step and sync else []))
    return message((1, 4), (12, message((2 if "*" in name else 1, name), (4, step), (6, options))))


def item(name: str | list[str], value: Any) -> tuple[int, Value]:
    names = [(1, name)] if isinstance(name, str) else [(2, one) for one in name]
    return (1, message(*names, (16, json.dumps(value))))


def history(step: int, values: dict[str, Any]) -> bytes:
    """A record of the history; "a.b" is a nested name."""
    items = [item(name.split("."), value) for name, value in values.items()]
    own = [item(["_step"], step), item(["_timestamp"], 1_700_000_000 + step)]
    return message((1, 3), (2, message(*items, *own, (2, message((1, step))))), (200, b""))


def log_of(records: list[bytes]) -> bytes:
    """The content of a file."""
    made = bytearray(b":W&B\xe1\xbe\x00")
    for data in records:
        rest, is_first = data, True
        while rest or is_first:
            room = 32768 - len(made) % 32768
            if room < 7:
                made += b"\0" * room
                continue
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[is_first, not rest]
            made += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
            is_first = False
    return bytes(made)


def write(folder: Path, content: bytes, name: str = "offline-run-20261123_065159-id7") -> Path:
    run = folder / name
    (run / "files" / "media" / "images").mkdir(parents=True, exist_ok=True)
    (run / "run-id7.wandb").write_bytes(content)
    return run


def parts_of(folder: Path, records: list[bytes], position: str | None = None) -> list[Part]:
    write(folder, log_of([RUN, *records]))
    return read(folder, position)


def read(folder: Path, position: str | None = None) -> list[Part]:
    """The parts of the only run below a folder."""
    (run,) = WandbFolder(folder, None).runs()
    assert isinstance(run, WandbRun)
    return list(run.parts(position))


def curves(parts: list[Part]) -> dict[str, list[tuple[int, float]]]:
    """By metric and variant, the points of all series."""
    return {
        f"{metric}/{variant}": [(iter, float(value)) for iter, _, value in points]
        for (metric, variant), points in points_of(parts).items()
    }


def last_position(parts: list[Part]) -> str:
    return [part.text for part in parts if isinstance(part, Position)][-1]


def missing(parts: list[Part]) -> list[tuple[str, str]]:
    """What cannot be given: its place and its kind or cause."""
    told = [(part.of, part.cause) for part in parts if isinstance(part, Problem)]
    return told + [(part.name, part.kind) for part in parts if isinstance(part, Unmapped)]
