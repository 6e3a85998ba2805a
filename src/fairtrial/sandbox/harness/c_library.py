"""The C library, called without `ctypes` itself, whose import takes longer than many commands.

The same classes come from the extension module that `ctypes` is made of, or else from `ctypes`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from ctypes import addressof, c_char, c_long, c_uint32, c_ulong, c_void_p, get_errno, sizeof

    libc: ctypes.CDLL
else:
    try:
        import _ctypes
        from _ctypes import addressof, get_errno, sizeof

        def _make_type(name, code):
            return type(_ctypes._SimpleCData)(name, (_ctypes._SimpleCData,), {"_type_": code})

        c_char, c_void_p = _make_type("c_char", "c"), _make_type("c_void_p", "P")
        c_long, c_ulong = _make_type("c_long", "l"), _make_type("c_ulong", "L")
        c_uint32 = _make_type("c_uint32", "I")

        class _Function(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
            _restype_ = _make_type("c_int", "i")

        class _Library:
            """Looks up functions by name, as `ctypes.CDLL` does."""

            def __init__(self):
                self._handle = _ctypes.dlopen(None, 0)

            def __getattr__(self, name):
                try:
                    function = _Function(_ctypes.dlsym(self._handle, name))
                except OSError as error:  # as of Python 3.14; `ctypes` raises the same
                    raise AttributeError(str(error)) from None
                setattr(self, name, function)
                return function

        libc = _Library()
    except (ImportError, AttributeError):  # not CPython, or another version of the module
        import ctypes
        from ctypes import addressof, c_char, c_long, c_uint32, c_ulong, c_void_p, get_errno, sizeof

        libc = ctypes.CDLL(None, use_errno=True)

__all__ = [
    "addressof",
    "c_char",
    "c_long",
    "c_uint32",
    "c_ulong",
    "c_void_p",
    "get_errno",
    "libc",
    "sizeof",
]
