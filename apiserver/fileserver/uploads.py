"""Uploads: streams the files of a multipart form, or a whole body, to the store. Either all are stored or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from apiserver.fileserver.room import Taken
from apiserver.rpc.body import Body
from apiserver.rpc.errors import bad_request
from apiserver.stores.files.disk import FileStore, Upload
from apiserver.stores.files.names import NotUtf8

MAX_FILES = 1000
#: Most parts of a form that are not files.
_MAX_OTHERS = 1000
#: A larger piece of a form is parsed in a thread: boundaries, and what looks like them, take about a microsecond each.
_SMALL = 16 * 2**10


#: The room for a file of this name, before which so many bytes of other files came. Raises Refusal if the caller may
#: not store it, or there is none.
Admit = Callable[[str, int], Awaitable[Taken]]


async def store_body(store: FileStore, company: str, name: str, body: Body, admit: Admit) -> int:
    """Store the body as the file `name`; returns its size."""
    with await admit(name, 0) as room:
        async with store.upload(company, name) as upload:

            async def take(data: bytes) -> None:
                room.take(len(data))
                await upload.write(data)

            await body.each(take)
            await upload.finish()
            room.complete()
            room.stored(await upload.commit())
            return upload.size


async def store_form(
    store: FileStore, company: str, headers: Mapping[str, str], body: Body, admit: Admit
) -> dict[str, int]:
    """Store each file of a multipart form under the name of its form field; returns their sizes by name."""
    form = _Form(_boundary(headers))
    uploads: dict[str, tuple[Upload, Taken]] = {}
    current: Upload
    room: Taken
    came = 0
    async with AsyncExitStack() as stack:

        async def take(data: bytes) -> None:
            nonlocal current, room, came
            for step in await form.read(data):
                match step:
                    case Begin(name):
                        room = stack.enter_context(await admit(name, came))
                        current = await stack.enter_async_context(store.upload(company, name))
                        uploads[name] = current, room
                    case End():
                        await current.finish()
                    case Data(piece):
                        room.take(len(piece))
                        came += len(piece)
                        await current.write(piece)

        await body.each(take)
        form.check_complete()
        for _, taken in uploads.values():
            taken.complete()
        for upload, taken in uploads.values():
            taken.stored(await upload.commit())
    return {name: upload.size for name, (upload, _) in uploads.items()}


def _boundary(headers: Mapping[str, str]) -> bytes:
    kind, options = parse_options_header(headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise bad_request("Files are uploaded as multipart/form-data with a boundary")
    return options[b"boundary"]


# --- the form --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """A file with that name begins."""

    name: str


@dataclass(frozen=True, slots=True)
class Data:
    """More of the file that began last."""

    piece: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The file that began last is complete."""


FormStep = Begin | Data | End


@dataclass(slots=True)
class _Part:
    """The part of the form that is being read: its headers, and whether it is a file."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    header_name: bytes = b""
    header_value: bytes = b""
    is_file: bool = False


class _Form:
    """Parses a multipart form into steps. Parts without a file name are not files, and are skipped."""

    def __init__(self, boundary: bytes) -> None:
        self._steps: list[FormStep] = []
        self._part = _Part()
        self._files = self._others = 0
        self._complete = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_part_data": self._on_part_data,
                    "on_part_end": self._on_part_end,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_end": self._on_end,
                },
            )
        except FormParserError as error:
            raise bad_request(f"The form cannot be read: {error}") from None

    async def read(self, data: bytes) -> list[FormStep]:
        """The steps in the next piece of the body."""
        return self._feed(data) if len(data) <= _SMALL else await asyncio.to_thread(self._feed, data)

    def _feed(self, data: bytes) -> list[FormStep]:
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise bad_request(f"The form cannot be read: {error}") from None
        steps, self._steps = self._steps, []
        return steps

    def check_complete(self) -> None:
        """Refuse a form that is cut off or holds no file."""
        if not self._complete:
            raise bad_request("The form is cut off")
        if not self._files:
            raise bad_request("The form holds no file")

    def _on_part_begin(self) -> None:
        self._part = _Part()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.header_value += data[start:end]

    def _on_header_end(self) -> None:
        self._part.headers[self._part.header_name.lower()] = self._part.header_value
        self._part.header_name = self._part.header_value = b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._part.headers.get(b"content-disposition", b""))
        self._part.is_file = b"filename" in options
        if not self._part.is_file:
            self._others += 1
            if self._others > _MAX_OTHERS:
                raise bad_request(f"The form holds more than {_MAX_OTHERS} parts that are not files")
            return
        self._files += 1
        if self._files > MAX_FILES:
            raise bad_request(f"The form holds more than {MAX_FILES} files")
        self._steps.append(Begin(_text(options.get(b"name") or options[b"filename"])))

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part.is_file:
            self._steps.append(Data(data[start:end]))

    def _on_part_end(self) -> None:
        if self._part.is_file:
            self._steps.append(End())

    def _on_end(self) -> None:
        self._complete = True


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise NotUtf8 from None
