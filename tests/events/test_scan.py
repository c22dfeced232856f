"""The compiled scanner reads every body as the decoder does.

`EVENTS_EXAMPLES=20000 pytest tests/events/test_scan.py` looks longer.
"""

from __future__ import annotations

import json
import math
import runpy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.events import lines, scan
from apiserver.events.event_types import SentEvent
from apiserver.events.gathered import NO_TIMESTAMP, Gathered
from apiserver.events.rejects import Contradiction, Rejects
from tests.chance import examples
from tests.events.conftest import require_scanner

long_enough = examples(300)


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    require_scanner()


PLAIN = {"type": "training_stats_scalar", "task": "t", "metric": "m", "variant": "v", "iter": 1, "value": 0.5}


def line(**fields: Any) -> bytes:
    return json.dumps({**PLAIN, **fields}, ensure_ascii=False).encode()


def told(read: scan.Read) -> dict[str, Any]:
    """What was read, in a form that can be compared."""
    gathered, others, rejects = read
    return {
        "keys": gathered.keys,
        "lengths": gathered.lengths,
        "iters": gathered.iters.tolist(),
        "timestamps": gathered.timestamps.tolist(),
        "values": [repr(value) for value in gathered.values.tolist()],
        "others": others,
        "reasons": dict(rejects.reasons),
        "field": rejects.field,
        "lines": rejects.lines,
    }


def both(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The body as the decoder has it, and as it is read with the scanner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "scanner", None)
        decoded = scan.read(body)
    return told(decoded), told(scan.read(body))


def scanned(body: bytes) -> Gathered:
    """The points, for which the scanner alone must have been enough."""
    left: list[bytes] = []

    def decode(rest: bytes, stop: lines.Stop = lines.never) -> tuple[list[SentEvent], Rejects]:
        left.append(rest)
        return [], Rejects()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "decode", decode)
        gathered, _, _ = scan.read(body)
    assert not left
    return gathered


names = st.sampled_from(["loss", "m", "", "é", "日本", "a b", 'say "x"', "back\\slash", "tab\t"])
numbers = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?[0-9]{1,3}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["-0", "0", "00", "01", "1.", ".5", "+1", "1e400", "1e-400", "-1e-400", "5e-324", "1e"]),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "-NaN", "NaNs", "nan", "1.NaN", "-Inf", "infinity", "--Infinity"]),
)
texts = names.map(lambda name: json.dumps(name, ensure_ascii=False))
anything = st.one_of(
    numbers, texts, st.sampled_from(["null", "true", "false", "[]", "{}", "[1]", '"\\u0041"', "nul", "tru"])
)
KNOWN = ("task", "metric", "variant", "worker", "iter", "timestamp", "value", "x_axis_label", "model", "model_event",
         "allow_locked", "ts", "msg", "method")  # fmt: skip
good = {
    **dict.fromkeys(("task", "metric", "variant", "worker", "x_axis_label"), texts),
    **dict.fromkeys(("model_event", "allow_locked"), st.sampled_from(["true", "false"])),
    "iter": st.integers(-(2**63), 2**63 - 1).map(str),
    "timestamp": st.integers(0, 2 * 10**12).map(str),
    "value": numbers,
}
spaces = st.sampled_from(["", "", "", " ", "\t", "  ", "\r"])
types = st.sampled_from([*['"training_stats_scalar"'] * 12, '"log"', '"plot"', '"training stats scalar"', "1", '""'])


@st.composite
def written_lines(draw: st.DrawFn) -> str:
    """A line as it might be sent: mostly plain, at times odd."""
    fields = [("type", draw(types))] if draw(st.integers(0, 30)) else []
    for name in draw(st.lists(st.sampled_from(KNOWN), max_size=9, unique=draw(st.integers(0, 9)) > 0)):
        plain = draw(st.integers(0, 12)) and name in good
        fields.append((name, draw(good[name] if plain else anything)))
    fields = draw(st.permutations(fields))
    space = draw(spaces)
    return "{" + ("," + space).join(f'{space}"{name}"{space}:{value}' for name, value in fields) + space + "}" + space


@pytest.mark.test
@given(
    st.lists(
        st.one_of(written_lines(), written_lines(), st.sampled_from(["", " ", "{}", "[]", "x", "{} {}"])), max_size=6
    )
)
@long_enough
def test_any_body_is_read_alike(sent: list[str]) -> None:
    expected, got = both("\n".join(sent).encode())
    assert got == expected


@pytest.mark.test
@given(st.integers(0, 10**6), st.integers(0, 255), st.integers(0, 3))
@long_enough
def test_a_body_with_a_wrong_byte_is_read_alike(at: int, byte: int, count: int) -> None:
    body = bytearray(b"\n".join(line(iter=n, metric="größe", timestamp=n, worker="w") for n in range(3)))
    for shift in range(count):
        body[(at + shift * 7) % len(body)] = byte
    expected, got = both(bytes(body))
    assert got == expected


@pytest.mark.test
@given(numbers)
@example("123456789012345678901234567890")
@example("0.1000000000000000055511151231257827021181583404541015625")
@long_enough
def test_numbers_are_rounded_alike(number: str) -> None:
    expected, got = both(b'{"type":"training_stats_scalar","task":"t","value":%s}' % number.encode())
    assert got == expected


def test_plain_lines_need_no_second_look() -> None:
    odder = {"iter": -5, "timestamp": 7, "variant": "b", "worker": "w", "value": None}
    gathered = scanned(b"\n".join([line(), b"", line(**odder), line(variant="c", x_axis_label="epochs")]))
    assert [key[-2:] for key in gathered.keys] == [("", None), ("w", None), ("", "epochs")]
    assert gathered.iters.tolist() == [1, -5, 1]
    assert gathered.timestamps.tolist() == [NO_TIMESTAMP, 7, NO_TIMESTAMP]
    assert math.isnan(gathered.values[1])


def test_what_python_writes_for_nan_and_infinities_is_plain() -> None:
    values = [math.nan, math.inf, -math.inf, 0.5]
    gathered = scanned(b"\n".join(line(value=value) for value in values))
    assert [repr(value) for value in gathered.values.tolist()] == [repr(value) for value in values]


def test_what_the_sdk_sends_is_plain() -> None:
    body = line(timestamp=1, worker="host:gpu0", allow_locked=False, model_event=False, method="get", model=None)
    assert scanned(body).lengths == [1]


def test_series_are_told_apart_by_each_of_their_names() -> None:
    fields: list[dict[str, Any]] = [{}, {"task": "u"}, {"metric": "n"}, {"variant": "w"}, {"worker": "x"}]
    fields += [{"x_axis_label": ""}, {"allow_locked": True}, {"model_event": True}]
    assert scan.scanner is not None
    keys, lengths, *_ = scan.scanner(b"\n".join(line(**more) for more in fields * 2), 0, 0)
    assert (len(set(keys)), lengths) == (len(fields), [2] * len(fields))


@pytest.mark.test
def test_any_number_of_labels_takes_no_longer_than_one() -> None:
    body = b"\n".join(line(variant=str(n), x_axis_label=str(n)) for n in range(100_000))  # minutes, if they collided
    assert len(scanned(body).keys) == 100_000


def test_a_scanner_of_another_format_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver_accelerator.FORMAT", 0)
    assert runpy.run_path(str(scan.__file__))["scanner"] is None


def test_other_lines_keep_their_numbers() -> None:
    body = b"\n".join([line(), b"oops", line(iter=2), b'{"type": "log", "task": "t", "msg": "hello"}'] * 9)
    gathered, others, rejects = scan.read(body)
    assert (len(gathered.iters), len(others), rejects.lines[:2]) == (18, 9, [2, 6])


@pytest.mark.test
def test_no_end_of_malformed_lines_is_no_body() -> None:
    with pytest.raises(Contradiction):
        scan.read(b"\n".join([line()] * 30_000 + [b"x"] * 10_001))


def test_a_long_body_is_read_while_others_run() -> None:
    body = b"\n".join(line(iter=n, variant=str(n % 7)) for n in range(5000))
    expected, got = both(body)
    assert got == expected
    assert got["lengths"] == [715, 715, 714, 714, 714, 714, 714]
