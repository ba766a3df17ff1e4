"""Conversion between Python types and JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec.inspect import CustomType, type_info

from ..errors import InvalidPayload
from ..showing import error_text, with_article
from .codec import Json, JsonText
from .models import dump_model, is_known, load_model

T = TypeVar("T")

_PLAIN: Final = (Any, object, inspect.Parameter.empty)
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


class Shape(Generic[T]):
    """Converts values of one annotation to JSON and back.

    Values without an annotation, or with `Any` or `object`, are passed through: they are refused later if not JSON.
    """

    __slots__ = ("annotation", "is_plain")

    def __init__(self, annotation: Any) -> None:
        """Raises `TypeError` for a type that JSON cannot represent, `NameError` for an undefined name."""
        self.is_plain = annotation in _PLAIN
        self.annotation = Any if self.is_plain else annotation
        if not self.is_plain:
            self.decoder()
            for kind in _custom_types(type_info(annotation), set()):
                if not is_known(kind):
                    raise TypeError(f"{with_article(kind.__qualname__)} cannot be read from JSON")

    def __repr__(self) -> str:
        return getattr(self.annotation, "__qualname__", None) or str(self.annotation)

    def dump(self, value: T, what: str) -> Json:
        """The value as JSON: text for dates and ids, objects for dataclasses, lists for sets."""
        if self.is_plain or type(value) in _SCALARS:
            return value
        try:
            return msgspec.to_builtins(value, str_keys=True, enc_hook=dump_model)
        except MemoryError:
            raise
        except Exception as error:
            # Models and dataclasses may run any code.
            raise InvalidPayload(what, "$", f"cannot be converted: {error_text(error)}") from error

    def load(self, value: Json) -> T:
        """Raises `msgspec.ValidationError`, which says where the value does not fit."""
        if self.is_plain:
            return cast(T, value)
        return cast(T, msgspec.convert(value, self.annotation, str_keys=True, dec_hook=load_model))

    def decoder(self) -> Callable[[JsonText], T]:
        """A decoder from JSON text, for repeated use."""
        return cast("Callable[[JsonText], T]", msgspec.json.Decoder(self.annotation, dec_hook=load_model).decode)


def _custom_types(info: Any, seen: set[int]) -> Iterator[type]:
    """All types inside a type that msgspec leaves to hooks."""
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, CustomType):
        yield info.cls
    elif isinstance(info, msgspec.Struct):
        for field in info.__struct_fields__:
            yield from _custom_types(getattr(info, field), seen)
    elif isinstance(info, tuple):
        for item in info:
            yield from _custom_types(item, seen)
