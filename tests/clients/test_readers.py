"""pandas, polars, DuckDB, pyarrow and a page's JavaScript read tables by their URLs, as the guide says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from docs.site.pages import DOCS
from tests.docs.test_tutorial import blocks
from tests.harness import PATIENCE, Served

#: Where `make check` installs them.
PYTHON = Path(__file__).parents[2] / ".venv-readers" / "bin" / "python"

#: Lets DuckDB find its extension where pip installs it.
_HTTPFS = """
import glob, sys
found = glob.glob(sys.prefix + "/lib/python3*/site-packages/duckdb_extension_httpfs/extensions/*/httpfs.*")[0]
"""
_VALUES = [0.1, float("nan"), float("inf"), -0.0, 1e300, 5e-324]


@pytest.fixture
def linked(server: Served) -> dict[str, str]:
    """A task with curves, and a link to it."""
    project = server.call("projects.create", {"name": "examples"})["id"]
    task = server.call("tasks.create", {"name": "first try", "type": "training", "project": project})["id"]
    lines = [
        {"type": "training_stats_scalar", "task": task, "metric": metric, "variant": variant, "iter": 10 * n}
        | {"timestamp": 1_700_000_000_000 + n, "value": str(value)}
        for metric, variant in (("loss", "train"), ("loss", "ünder"), ("acc", "train"))
        for n, value in enumerate(_VALUES)
    ]
    with server.client() as client:
        client.post("/events.add_batch", content="\n".join(map(json.dumps, lines))).raise_for_status()
        token = client.post("/data/links", json={"address": f"/data/tasks/{task}/scalars"}).json()["token"]
    return {"SERVER": server.api_url, "TASK": task, "TOKEN": token}


def _missing(what: str) -> NoReturn:
    pytest.skip(f"{what} is not installed: 'make check' installs it")


def _run(linked: dict[str, str], code: str, shown: str, folder: Path) -> Any:
    """What `shown` is after the code, as JSON."""
    if not PYTHON.exists():
        _missing("pandas")
    names = "".join(f"{name} = {value!r}\n" for name, value in linked.items())
    script = f"{names}{code}\nimport json\nprint(json.dumps({shown}))\n"
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return json.loads(_printed([str(PYTHON), "-W", "error", "-c", script], environment))


def _printed(command: list[str], environment: dict[str, str] | None = None) -> str:
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE
    ).stdout


def _block(language: str, word: str) -> str:
    (found,) = [
        one.text for one in blocks(DOCS / "guides" / "data.md") if one.language == language and word in one.text
    ]
    return found


def test_pandas(linked: dict[str, str], tmp_path: Path) -> None:
    code = _block("python", "pandas")
    shown = "[losses.shape, frame.value.map(float.hex).tolist(), str(frame.timestamp.dtype), frame.variant.tolist()]"
    shape, values, dtype, variants = _run(linked, code, shown, tmp_path)
    assert shape == [6, 2]
    assert values == [value.hex() for value in _VALUES] * 3
    assert dtype == "datetime64[ms, UTC]"
    assert variants == ["train"] * 12 + ["ünder"] * 6
    by_csv = _run(linked, code.replace("frame = pandas.read_parquet", "other = pandas.read_parquet"), shown, tmp_path)
    assert by_csv == [shape, values, "int64", variants]


def test_polars(linked: dict[str, str], tmp_path: Path) -> None:
    code = _block("python", "polars")
    code += '\nread = polars.read_csv(f"{SERVER}/data/tasks/{TASK}/scalars.csv?token={TOKEN}")\n'
    shown = "[sorted(means['variant'].to_list()), [float(one).hex() for one in read['value']]]"
    variants, values = _run(linked, code, shown, tmp_path)
    assert variants == ["train", "ünder"]
    assert values == [value.hex() for value in _VALUES] * 3


def test_duckdb(linked: dict[str, str], tmp_path: Path) -> None:
    loaded = _HTTPFS + _block("python", "duckdb").replace('"LOAD httpfs"', "f\"LOAD '{found}'\"")
    rows = _run(linked, loaded, "sorted(rows)", tmp_path)
    assert [row[:2] for row in rows] == [["train", 6], ["ünder", 6]]
    assert [row[2] for row in rows] == [0.0, 0.0]


def test_pyarrow(linked: dict[str, str], tmp_path: Path) -> None:
    shown = (
        "[table.num_rows, [one.hex() for one in table['value'].to_pylist()], table.schema.metadata[b'task'].decode()]"
    )
    assert _run(linked, "import pyarrow.ipc\n" + _block("python", "pyarrow"), shown, tmp_path) == [
        18,
        [value.hex() for value in _VALUES] * 3,
        linked["TASK"],
    ]


def test_a_page(linked: dict[str, str], tmp_path: Path) -> None:
    node = shutil.which("node") or _missing("node")
    url = "{SERVER}/data/tasks/{TASK}/scalars.bin?points=3&token={TOKEN}".format(**linked)
    code = f"{_block('js', 'Float32Array')}\ncurves({url!r}).then(found => console.log(JSON.stringify(found.map("
    code += "one => [one.metric, one.variant, Array.from(one.x), Array.from(one.max), Array.from(one.count)]))))"
    found = json.loads(_printed([node, "-e", code]))
    assert [one[:2] for one in found] == [["acc", "train"], ["loss", "train"], ["loss", "ünder"]]
    assert found[0][2:4] == [[0, 17, 34], [0.1, 0, 1e300]]
    assert found[0][4] == [2, 2, 2]
