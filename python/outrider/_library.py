"""The C interface (outrider.h): JSON-RPC calls on an instance that any thread may make."""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import pathlib
import sys
import threading
from typing import Any, Optional

HERE = pathlib.Path(__file__).resolve().parent
NAME = "liboutrider.dylib" if sys.platform == "darwin" else "liboutrider.so"


class Error(RuntimeError):
    """What went wrong. `field` is the option or argument that it is about, where there is one;
    `code` the kind, such as "invalid_argument" or "not_found"."""

    def __init__(self, message: str, field: Optional[str] = None, code: Optional[str] = None):
        super().__init__(message)
        self.field = field
        self.code = code


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """OUTRIDER_LIBRARY, the library that came with this package, or the system's."""
    packaged = HERE / NAME
    path = os.environ.get("OUTRIDER_LIBRARY") or (str(packaged) if packaged.exists() else
                                                  "liboutrider.so.0.1")
    try:
        lib = ctypes.CDLL(path)
    except OSError as failure:
        raise Error(f"the library of outrider cannot be loaded: {failure}") from None
    lib.outrider_version.restype = ctypes.c_char_p
    lib.outrider_create.restype = ctypes.c_void_p
    lib.outrider_create.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    lib.outrider_call.restype = ctypes.c_void_p  # not c_char_p: it is ours to free
    lib.outrider_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.outrider_free.argtypes = [ctypes.c_void_p]
    lib.outrider_free.restype = None
    lib.outrider_destroy.argtypes = [ctypes.c_void_p]
    lib.outrider_destroy.restype = None
    return lib


def version() -> str:
    """The library's version: "0.1.0"."""
    text: bytes = library().outrider_version()
    return text.decode()


def _take(pointer: int) -> str:
    """The text at `pointer`, which is freed."""
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        library().outrider_free(pointer)


def _plain(value: object) -> Any:
    """Paths, and numbers of numpy, as JSON has them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value that JSON has")


def encode(params: dict[str, Any]) -> str:
    """A JSON object. Raises Error with the name of what has no form there."""
    parts = []
    for name, value in params.items():
        try:
            text = json.dumps(value, default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as failure:
            raise Error(f"{name}: {failure}", name, "invalid_argument") from None
        parts.append(f"{json.dumps(name)}:{text}")
    return "{" + ",".join(parts) + "}"


class Instance:
    """An instance. Calls release Python's lock, so that other threads go on while one waits."""

    def __init__(self, config: dict[str, Any]) -> None:
        error = ctypes.c_void_p()
        self._handle: Optional[int] = library().outrider_create(encode(config).encode(),
                                                                ctypes.byref(error))
        if not self._handle:
            message = _take(error.value) if error.value else "out of memory"
            field = message.split(" ", 1)[0].rstrip(":")
            is_field = field.split(".", 1)[0] in config
            raise Error(message, field if is_field else None, "invalid_argument")
        self._ids = itertools.count(1)
        self._calls = 0
        self._changed = threading.Condition()

    def call(self, method: str, **params: Any) -> Any:
        """A method's result. Raises Error; after close() always."""
        request = (f'{{"jsonrpc":"2.0","id":{next(self._ids)},"method":{json.dumps(method)},'
                   f'"params":{encode(params)}}}').encode()
        handle = self._enter()
        try:
            pointer = library().outrider_call(handle, request)
        finally:
            self._leave()
        if not pointer:
            raise Error("out of memory", None, "resource_exhausted")
        answer = json.loads(_take(pointer))
        if "error" in answer:
            data = answer["error"].get("data") or {}
            raise Error(answer["error"]["message"], data.get("field") or None, data.get("code"))
        return answer["result"]

    def _enter(self) -> int:
        with self._changed:
            if self._handle is None:
                raise Error("this Outrider is closed", None, "cancelled")
            self._calls += 1
            return self._handle

    def _leave(self) -> None:
        with self._changed:
            self._calls -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Ends everything and frees it. Calls of other threads that have begun are waited for: none
        of ours takes longer than a poll. Again: no effect."""
        with self._changed:
            handle, self._handle = self._handle, None
            self._changed.wait_for(lambda: self._calls == 0)
        if handle is not None:
            library().outrider_destroy(handle)
