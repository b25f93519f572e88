"""Control planes in Python, and the digest by which a result of the same control plane is found in the cache."""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Epoch

    #: A control plane: a function that is called at the end of each epoch, or a class whose objects are called. Each
    #: run makes a new object of a class.
    Control = Callable[[Epoch], object] | type

#: Builtins through which a function has effects that its result does not show.
_OUTSIDE = {"print", "open", "input", "exec", "eval", "globals", "setattr", "__import__"}


class _Unknown(Exception):
    """A control plane uses a value that cannot be determined."""


def fresh(control: Any) -> Any:
    """The control plane of one run: the function itself, or a new object of a class."""
    return control() if isinstance(control, type) else control


class Counted:
    """A control plane that knows how often it was called."""

    def __init__(self, control: Any) -> None:
        self.control, self.calls = fresh(control), 0

    def __call__(self, epoch: Epoch) -> None:
        self.calls += 1
        self.control(epoch)


def digest(control: Any, interval: str) -> str | None:
    """Digest of the behaviour of a control plane: its code, the values that the code uses, and its interval. None where
    these cannot be determined: for an object with a state, or a function that uses a list, prints or opens files."""
    try:
        told = "\n".join((sys.version, interval, *_told(control, set())))
    except _Unknown:
        return None
    return hashlib.sha256(told.encode()).hexdigest()


def _told(value: Any, seen: set[int]) -> Iterator[str]:
    """A value as text; equal values have equal texts."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, (tuple, frozenset)):
        parts = ["\x00".join(_told(v, seen)) for v in value]
        yield f"{type(value).__name__} {len(parts)}"
        yield from sorted(parts) if isinstance(value, frozenset) else parts
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__} {getattr(value, '__version__', '')}"
    elif isinstance(value, BuiltinFunctionType) or _is_builtin(value):
        if value.__name__ in _OUTSIDE:
            raise _Unknown
        yield f"builtin {value.__module__}.{value.__qualname__}"
    elif isinstance(value, (FunctionType, type, staticmethod, CodeType)):
        if id(value) in seen:
            yield "again"
            return
        seen.add(id(value))
        yield from _of_code(value, seen)
    else:
        raise _Unknown


def _is_builtin(value: Any) -> bool:
    name = getattr(value, "__name__", None)
    return isinstance(name, str) and getattr(builtins, name, None) is value


def _of_code(value: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(value, CodeType):
        yield f"code {value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_argcount} {value.co_flags}"
        for constant in value.co_consts:
            if constant is not Ellipsis:
                yield from _told(constant, seen)
    elif isinstance(value, staticmethod):
        yield from _told(value.__func__, seen)
    elif isinstance(value, FunctionType):
        yield from _told(value.__code__, seen)
        yield from _told(value.__defaults__, seen)
        yield from _told(tuple((value.__kwdefaults__ or {}).items()), seen)
        for cell in value.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # not assigned yet
                raise _Unknown from None
            yield from _told(held, seen)
        for name in sorted(_names(value.__code__)):
            found = value.__globals__.get(name, getattr(builtins, name, None))
            if found is not None or name in value.__globals__:
                yield name
                yield from _told(found, seen)
    else:
        for base in value.__bases__:
            if base is not object:
                yield from _told(base, seen)
        for name, held in sorted(vars(value).items()):
            if name not in ("__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__annotations__"):
                yield name
                yield from _told(held, seen)


def _names(code: CodeType) -> set[str]:
    """Names that a function and the functions within it look up, attributes among them."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
