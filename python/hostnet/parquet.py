"""Parquet files whose columns carry a unit and a meaning, as metadata of the Arrow fields and of the file."""

from __future__ import annotations

import ctypes
import io
import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import polars as pl


class ColumnInfo(TypedDict):
    """Unit and meaning of a column."""

    unit: str
    description: str


class _ArrowSchema(ctypes.Structure):
    """`struct ArrowSchema` of Arrow's C data interface."""


_ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowSchema))),
    ("dictionary", ctypes.POINTER(_ArrowSchema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


def _pairs(metadata: Mapping[str, str]) -> bytes:
    """Metadata in the format of the C data interface: a count, then each key and value, preceded by their lengths."""
    out = struct.pack("=i", len(metadata))
    for text in (t.encode() for pair in metadata.items() for t in pair):
        out += struct.pack("=i", len(text)) + text
    return out


class _Described:
    """The Arrow schema of a frame with metadata of the fields. An importer copies the metadata, which exists as long as
    this object."""

    def __init__(self, schema: pl.Schema, about: Mapping[str, ColumnInfo]):
        self._schema = schema
        self._held = {n: ctypes.create_string_buffer(_pairs(dict(about[n]))) for n in schema if n in about}  # type: ignore[arg-type]

    def __arrow_c_schema__(self) -> object:
        capsule = self._schema.__arrow_c_schema__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        root = _ArrowSchema.from_address(pointer_of(capsule, b"arrow_schema"))
        for i in range(root.n_children):
            field = root.children[i].contents
            held = self._held.get(field.name.decode())
            if held is not None:
                field.metadata = ctypes.addressof(held)
        return capsule


def parquet(frame: pl.DataFrame, about: Mapping[str, ColumnInfo]) -> bytes:
    """The frame as a Parquet file. ``about`` goes to the metadata of the fields (``unit``, ``description``), and as JSON under
    the key ``hostnet`` to the metadata of the file, for readers that show only those."""
    out = io.BytesIO()
    known: dict[str, Any] = {n: dict(about[n]) for n in frame.columns if n in about}
    frame.write_parquet(out, metadata={"hostnet": json.dumps(known)}, arrow_schema=_Described(frame.schema, about))
    return out.getvalue()
