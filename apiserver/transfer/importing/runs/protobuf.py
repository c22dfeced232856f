"""Reads messages of Protocol Buffers by the library `protobuf`. A class names the fields that are read of a message:

    class Value(Message):
        tag = field(1, bytes)
        simple_value = field(2, Float32)

What `parsed(Value, data)` returns has these fields, and the methods of the library's messages. A field that is missing
has the value that the format gives it, and `HasField` tells. Text is bytes, so that text that is not UTF-8 costs only
itself: `text` reads it. Numbers may come one by one or packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from apiserver.common.protobuf_wire import Malformed

_pool = DescriptorPool()


class Float32(float):
    """A float of 32 bits, where a field is described."""


class Zigzag(int):
    """A signed number whose sign is its last bit, where a field is described."""


_TYPES = {
    bool: FieldDescriptorProto.TYPE_BOOL,
    bytes: FieldDescriptorProto.TYPE_BYTES,
    float: FieldDescriptorProto.TYPE_DOUBLE,
    Float32: FieldDescriptorProto.TYPE_FLOAT,
    int: FieldDescriptorProto.TYPE_INT64,
    Zigzag: FieldDescriptorProto.TYPE_SINT64,
}


class _Field(NamedTuple):
    number: int
    kind: type
    label: FieldDescriptorProto.Label.ValueType


class Message:
    """A message, once parsed. A class of it describes one: its fields may have the types above, and earlier classes."""

    HasField: Callable[[str], bool]
    ListFields: Callable[[], list[tuple[FieldDescriptor, Any]]]
    _made: ClassVar[Any]
    """The library's class."""

    def __init_subclass__(cls) -> None:
        name = f"{cls.__module__}.{cls.__name__}"
        file = FileDescriptorProto(name=name, package=cls.__module__)
        described = file.message_type.add(name=cls.__name__)
        dependencies = set()
        for field_name, content in vars(cls).items():
            if isinstance(content, _Field):
                made = described.field.add(name=field_name, number=content.number, label=content.label)
                if issubclass(content.kind, Message):
                    made.type_name = content.kind._made.DESCRIPTOR.full_name
                    dependencies.add(content.kind._made.DESCRIPTOR.file.name)
                else:
                    made.type = _TYPES[content.kind]
        file.dependency.extend(dependencies)
        _pool.Add(file)
        cls._made = GetMessageClass(_pool.FindMessageTypeByName(name))


_Kind = TypeVar("_Kind")
_Message = TypeVar("_Message", bound=Message)


def field(number: int, kind: type[_Kind]) -> _Kind:
    """A field that a message has once; of several, the last one counts, and messages are merged."""
    return cast(_Kind, _Field(number, kind, FieldDescriptorProto.LABEL_OPTIONAL))


def repeated(number: int, kind: type[_Kind]) -> Sequence[_Kind]:
    """A field that a message has any number of times."""
    return cast(Sequence[_Kind], _Field(number, kind, FieldDescriptorProto.LABEL_REPEATED))


def parsed(message: type[_Message], data: bytes) -> _Message:
    """The message that some bytes are. Raises Malformed."""
    try:
        return cast(_Message, message._made.FromString(data))
    except DecodeError:
        raise Malformed("it is no message of Protocol Buffers") from None


def text(content: bytes) -> str:
    """Text; what is not UTF-8 becomes U+FFFD."""
    return content.decode(errors="replace")


def unknown(message: Any) -> set[int]:
    """The numbers of a message's fields that its class does not describe."""
    known, others = message.DESCRIPTOR.fields_by_number, cast(Any, UnknownFieldSet(message))
    return {other.field_number for other in others if other.field_number not in known}
