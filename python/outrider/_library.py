"""The C interface (outrider.h): JSON-RPC calls on an instance that any thread may make."""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import json
import os
import pathlib
import sys
import sysconfig
import time
import weakref
from typing import Any, Optional

# A wait in the library cannot be interrupted: by Ctrl-C, or by close().
WAIT_MS = 200
LOOK_S = 0.001  # how often close() looks whether the calls are back

# Whether an object is gone with its last reference. PyPy finds that out when it collects; CPython
# without its global lock when the thread that made the object runs next, or when it collects.
COUNTED_AT_ONCE = (sys.implementation.name == "cpython"
                   and not sysconfig.get_config_var("Py_GIL_DISABLED"))
MOST_LOOKS = 1000  # of close() elsewhere: at least a second, five times WAIT_MS

NAME = "liboutrider.dylib" if sys.platform == "darwin" else "liboutrider.so"


class Error(RuntimeError):
    """What went wrong. `field` is the option or argument that it is about, where there is one;
    `code` the kind, such as "invalid_argument" or "not_found"."""

    def __init__(self, message: str, field: Optional[str] = None, code: Optional[str] = None):
        super().__init__(message)
        self.field = field
        self.code = code


def packaged(name: str) -> Optional[pathlib.Path]:
    """The file of that name that came with this package; None without one. An editable install has
    the Python files in the checkout and what was built elsewhere; the package's path names both."""
    for folder in sys.modules[__package__].__path__:
        file = pathlib.Path(folder).resolve() / name
        if file.exists():
            return file
    return None


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """OUTRIDER_LIBRARY, the library that came with this package, or the system's."""
    path = os.environ.get("OUTRIDER_LIBRARY") or str(packaged(NAME) or "liboutrider.so.0.1")
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


class Reply:
    """What the library answered. It is here as soon as the library has returned: an interrupt
    (Ctrl-C), which Python raises before its next statement, does not lose it. To be freed; without a
    __del__, which would swallow an interrupt."""

    def __init__(self) -> None:
        self.pointers: list[Optional[int]] = []

    def result(self) -> Any:
        """The method's result. Raises Error."""
        if not self.pointers:
            raise Error("there is no reply", None, "cancelled")
        if not self.pointers[0]:
            raise Error("out of memory", None, "resource_exhausted")
        answer = json.loads(ctypes.string_at(self.pointers[0]))
        if "error" in answer:
            data = answer["error"].get("data") or {}
            raise Error(answer["error"]["message"], data.get("field") or None, data.get("code"))
        return answer["result"]

    def free(self) -> None:
        """Then there is no reply. Again: no effect."""
        while self.pointers:
            library().outrider_free(self.pointers.pop())


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
            text = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
            text.encode()
        except UnicodeEncodeError:
            raise Error(f"{name} holds half of a character (U+D800 to U+DFFF)", name,
                        "invalid_argument") from None
        except (TypeError, ValueError, RecursionError) as failure:
            raise Error(f"{name}: {failure}", name, "invalid_argument") from None
        parts.append(f"{json.dumps(name)}:{text}")
    return "{" + ",".join(parts) + "}"


def closed() -> Error:
    """What is answered after close()."""
    return Error("this Outrider is closed", None, "cancelled")


class Handle(ctypes.c_void_p):
    """An instance's address. Each call that is in the library holds a reference to it, and nothing
    but the Instance does besides. So it is gone when the last call is back (see COUNTED_AT_ONCE), and
    Python counts: a count of ours could be left raised by an interrupt, which comes between any two
    statements."""


class Instance:
    """An instance. Calls release Python's lock, so that other threads go on while one waits."""

    def __init__(self, config: dict[str, Any]) -> None:
        error = ctypes.c_void_p()
        text = encode(config).encode()
        self._owned: list[Optional[int]] = []  # the address, until it is destroyed
        self._destroyed: list[None] = []  # not empty from then on
        # Who is interrupted before they hold this instance leaves it to be destroyed with this. Not a
        # statement of Python in it, before which an interrupt could come.
        unheld = weakref.finalize(self, self._destroyed.extend,
                                  map(library().outrider_destroy, self._owned))
        unheld.atexit = False
        # In one step again, as in ask().
        self._owned.extend(map(library().outrider_create, (text,), (ctypes.byref(error),)))
        address = self._owned[0]
        if not address:
            self._owned.clear()
            message = _take(error.value) if error.value else "out of memory"
            field = message.split(" ", 1)[0].rstrip(":")
            is_field = field.split(".", 1)[0] in config
            raise Error(message, field if is_field else None, "invalid_argument")
        self._handle: Optional[Handle] = Handle(address)
        self._gone: list[object] = []  # not empty once the handle is gone, and so no call is inside
        self._watch = weakref.ref(self._handle, self._gone.append)
        self._process = os.getpid()
        self._ids = itertools.count(1)

    def call(self, method: str, **params: Any) -> Any:
        """A method's result. Raises Error; after close() always. Nothing may wait for longer than
        WAIT_MS: see _waits.py."""
        reply = Reply()
        try:
            self.ask(method, params, reply)
            return self.result(reply)
        finally:
            reply.free()

    def ask(self, method: str, params: dict[str, Any], reply: Reply) -> None:
        """The call alone: what the library answers is in `reply` even if this is interrupted."""
        request = (f'{{"jsonrpc":"2.0","id":{next(self._ids)},"method":{json.dumps(method)},'
                   f'"params":{encode(params)}}}').encode()
        if self._handle is None:
            raise closed()
        handles = map(getattr, (self,), ("_handle",))
        answers = map(library().outrider_call, handles, (request,))
        # Here it happens, all in one step for Python: nothing interrupts it between reading the
        # handle, the call and keeping the answer. After a close() the handle is NULL, which the
        # library refuses.
        reply.pointers.extend(answers)

    def result(self, reply: Reply) -> Any:
        """What `reply` of ask() holds. Raises Error."""
        try:
            return reply.result()
        except Error:
            if self._handle is None:
                raise closed() from None
            raise

    def close(self) -> None:
        """Ends everything and frees it. Calls of other threads that are in the library come back
        first, within WAIT_MS: the library allows none to begin once it destroys, and whether one has
        begun cannot be seen from here. Those of this thread are back: a signal's handler runs behind
        them. Where references are not counted at once, the wait has an end, since nothing says for
        sure that they are back; the library itself waits for those that have begun. Again: no
        effect, but that it waits as well; after an interrupt it goes on."""
        self._handle = None
        if os.getpid() != self._process:
            return  # a forked child has none of the instance's threads
        looks = 0
        while not self._gone and looks < MOST_LOOKS:
            if not COUNTED_AT_ONCE:
                gc.collect()
                looks += 1
            time.sleep(LOOK_S)
        destroy = library().outrider_destroy
        try:
            # In one step again: neither lost by an interrupt nor destroyed twice.
            self._destroyed.extend(map(destroy, map(self._owned.pop, (-1,))))
        except IndexError:  # by an earlier close(), which may still be in it
            while not self._destroyed:
                time.sleep(LOOK_S)
