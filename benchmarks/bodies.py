"""Request bodies as clients send them. Imports little, because every sender is a process that imports it."""

from __future__ import annotations

from random import Random

SERIES = 20
BATCH = 10_000
START_MS = 1_700_000_000_000


def scalar_lines(task: str, first: int, count: int, series: int = SERIES) -> bytes:
    """`count` scalar events as the SDK sends them, 257 bytes each. Their numbers count from `first`."""
    head = f'"type": "training_stats_scalar", "task": "{task}", "variant": "train"'
    tail = '"allow_locked": false, "model_event": false, "method": "get"'
    return "\n".join(
        f'{{"timestamp": {START_MS + number}, {head}, "iter": {number // series},'
        f' "metric": "metric {number % series}", "value": {1 / (number + 1)!r}, {tail}}}'
        for number in range(first, first + count)
    ).encode()


def noise_lines(task: str, first: int, count: int) -> bytes:
    """The same for ten series, with values that do not compress and times that jitter."""
    random = Random(first)
    head = f'"type": "training_stats_scalar", "task": "{task}", "variant": "train"'
    tail = '"allow_locked": false, "model_event": false, "method": "get"'
    return "\n".join(
        f'{{"timestamp": {START_MS + number * 5 + random.randrange(5)}, {head}, "iter": {number // 10},'
        f' "metric": "metric {number % 10}", "value": {random.gauss()!r}, {tail}}}'
        for number in range(first, first + count)
    ).encode()


def log_text(number: int) -> str:
    """A log line of 68 characters, as trainings print it."""
    loss, accuracy, took = number * 2654435761 % 1_000_003, number * 40503 % 1_000_003, number * 7919 % 9973
    return f"rank 0 epoch {number:9} loss 0.{loss:07} accuracy .{accuracy:07} time {took:4} ms"


def log_lines(task: str, first: int, count: int) -> bytes:
    """`count` log events as the SDK sends them. Their numbers count from `first`."""
    return "\n".join(
        f'{{"timestamp": {START_MS + number}, "type": "log", "task": "{task}", "level": "info", "worker": "host:0",'
        f' "msg": "{log_text(number)}", "model_event": false, "allow_locked": false}}'
        for number in range(first, first + count)
    ).encode()


def metrics_batch(run_id: str, first: int, count: int) -> bytes:
    """The same points for MLflow's log-batch, in ten series."""
    points = ", ".join(
        f'{{"key": "metric {number % 10}", "value": {1 / (number + 1)!r}, "timestamp": {START_MS + number},'
        f' "step": {number // 10}}}'
        for number in range(first, first + count)
    )
    return f'{{"run_id": "{run_id}", "metrics": [{points}]}}'.encode()


#: The functions that make bodies, by what is in the bodies. They take a task or run, a first number, and a count.
MAKERS = {"scalars": scalar_lines, "noise": noise_lines, "logs": log_lines, "metrics": metrics_batch}
