"""Reads HOCON files as plain dicts and lists, and keeps the parsed form as JSON with a digest of the text.

Importing and running the parser takes seconds, so it is imported only if something must be parsed. A cache that is
missing, corrupt or not writable only costs time.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import orjson

logger = logging.getLogger(__name__)

Tree = dict[str, Any]


class HoconError(Exception):
    """The text is not HOCON, or its top is not an object."""


def read_hocon(file: Path, cache: Path | None = None) -> Tree:
    """The content of `file`, or its copy in the folder `cache` if that is of the same text. Raises HoconError."""
    text = file.read_bytes()
    if cache is None:
        return parse_hocon(text.decode())
    digest = hashlib.sha256(text).hexdigest()
    cached = cache / f"{file.stem}.json"
    tree = _cached(cached, digest)
    if tree is None:
        tree = parse_hocon(text.decode())
        _keep(cached, digest, tree)
    return tree


def parse_hocon(text: str) -> Tree:
    """`text` as plain values; quoted keys such as "2.1" stay whole. HoconError names line and column."""
    from pyhocon import ConfigFactory, ConfigTree
    from pyhocon.exceptions import ConfigException
    from pyparsing import ParseBaseException, ParseSyntaxException

    try:
        with _looking_for_garbage():
            tree = ConfigFactory.parse_string(text)
    except (ConfigException, ParseBaseException, ParseSyntaxException) as error:
        raise HoconError(str(error)) from error
    if not isinstance(tree, ConfigTree):
        raise HoconError("the top is not an object")
    plain: Tree = tree.as_plain_ordered_dict()
    return plain


@contextmanager
def _looking_for_garbage() -> Iterator[None]:
    """Let Python free objects that refer to one another, also in a start, which does without.

    The parser makes two million of them for all schemas: 370 MB that a server would keep, as it freezes what is there.
    """
    looked = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not looked:
            gc.disable()


def _cached(file: Path, digest: str) -> Tree | None:
    try:
        content = orjson.loads(file.read_bytes())
        if content["sha256"] == digest and isinstance(content["tree"], dict):
            tree: Tree = content["tree"]
            return tree
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.debug("cannot use the parsed form in %s: %s", file, error)
    return None


def _keep(file: Path, digest: str, tree: Tree) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=file.parent, prefix=file.name, delete=False) as draft:
            draft.write(orjson.dumps({"sha256": digest, "tree": tree}))
        try:
            os.replace(draft.name, file)
        except OSError:
            with suppress(OSError):
                os.unlink(draft.name)
            raise
    except OSError as error:
        logger.debug("cannot keep the parsed form in %s: %s", file, error)
