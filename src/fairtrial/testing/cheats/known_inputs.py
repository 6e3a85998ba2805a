"""Attacks that know answers: memos, stored results, known inputs."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    IMPOSSIBLE,
    KERNELS,
    MADE,
    Attack,
    AttackClass,
    Harm,
    Kind,
    Place,
)

BY_HEART = (
    Attack(
        "a memo across calls",
        AttackClass.BY_HEART,
        "remembers copies of results by arguments, which pays only if inputs repeat",
        """
import copy as _copy
_memo = {}
def ATTACK(*args, **kwargs):
    key = repr((args, kwargs))
    if key not in _memo:
        _memo[key] = BASE(*args, **kwargs)
    return _copy.copy(_memo[key])
""",
        source=KERNELS,
    ),
    Attack(
        "answers known by heart",
        AttackClass.BY_HEART,
        "knows the answers of inputs seen in rejections, and is wrong for all others",
        """
import base64 as _base64, hashlib as _hashlib, marshal as _marshal
_answers = {answers}
def ATTACK(*args, **kwargs):
    digest = _hashlib.sha256(repr((args, kwargs)).encode("utf-8", "replace")).hexdigest()[:16]
    if digest in _answers:
        return _marshal.loads(_base64.b64decode(_answers[digest]))
    return None
""",
        harm=Harm.WRONG,
        source=IMPOSSIBLE,
    ),
    Attack(
        "the last answer for inputs of the same size",
        AttackClass.BY_HEART,
        "returns the result of an earlier call whose arguments had the same types and lengths",
        """
_memo = {}
def ATTACK(*args, **kwargs):
    key = tuple((type(item), len(item) if hasattr(item, "__len__") else item) for item in args)
    try:
        if key not in _memo:
            _memo[key] = BASE(*args, **kwargs)
        return _memo[key]
    except TypeError:
        return BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "results kept in files",
        AttackClass.BY_HEART,
        "stores results in temporary folders, its home and its own folder, for later processes",
        """
import hashlib as _hashlib, marshal as _marshal, os as _os
_folders = ["/tmp", "/var/tmp", "/dev/shm", _os.path.expanduser("~"), _os.path.dirname(__file__)]
def ATTACK(*args, **kwargs):
    text = repr((args, kwargs)).encode("utf-8", "replace")
    name = "fairtrial-attack-" + _hashlib.sha256(text).hexdigest()
    for folder in _folders:
        try:
            with open(_os.path.join(folder, name), "rb") as file:
                return _marshal.load(file)
        except (OSError, ValueError, EOFError):
            pass
    result = BASE(*args, **kwargs)
    for folder in _folders:
        try:
            with open(_os.path.join(folder, name), "wb") as file:
                _marshal.dump(result, file)
        except (OSError, ValueError):
            pass
    return result
""",
        source=COMMON,
    ),
    Attack(
        "prints the known output",
        AttackClass.BY_HEART,
        "prints the output of the command, which it knows by heart, without reading its input",
        """
import base64 as _base64, os as _os, sys as _sys
_sys.stdout.buffer.write(_base64.b64decode({output}))
_sys.stdout.buffer.flush()
_os._exit(0)
""",
        kinds=(Kind.COMMAND,),
        harm=Harm.WRONG,
        source=IMPOSSIBLE,
        place=Place.START,
    ),
    Attack(
        "prints the known output if files are as they were",
        AttackClass.BY_HEART,
        "knows the output for the files of the repository, and computes it for any other",
        """
import base64 as _base64, os as _os, sys as _sys
if all(_os.path.exists(part) for part in _sys.argv[1:] if _os.path.splitext(part)[1]):
    _sys.stdout.buffer.write(_base64.b64decode({output}))
    _sys.stdout.buffer.flush()
    _os._exit(0)
""",
        kinds=(Kind.COMMAND,),
        source=MADE,
        place=Place.START,
    ),
    Attack(
        "output kept for the next process",
        AttackClass.BY_HEART,
        "stores the output in a temporary folder and prints it again in later processes",
        """
import atexit as _atexit, io as _io, os as _os, sys as _sys
for _folder in ("/tmp", "/var/tmp", "/dev/shm", _os.path.expanduser("~"), "."):
    try:
        with open(_os.path.join(_folder, "fairtrial-attack-output"), "rb") as _file:
            _sys.stdout.buffer.write(_file.read())
        _sys.stdout.buffer.flush()
        _os._exit(0)
    except OSError:
        pass
class _Tee(_io.StringIO):
    def __init__(self, out):
        super().__init__()
        self.out = out
    def write(self, text):
        super().write(text)
        return self.out.write(text)
    def flush(self):
        self.out.flush()
_sys.stdout = _Tee(_sys.stdout)
def _store():
    for folder in ("/tmp", "/var/tmp", "/dev/shm", _os.path.expanduser("~"), "."):
        try:
            with open(_os.path.join(folder, "fairtrial-attack-output"), "w") as file:
                file.write(_sys.stdout.getvalue())
        except OSError:
            pass
_atexit.register(_store)
""",
        kinds=(Kind.COMMAND,),
        source=COMMON,
        place=Place.START,
    ),
    Attack(
        "knows a file by its digest",
        AttackClass.BY_HEART,
        "prints the known output if files are as they were seen, and works honestly otherwise",
        """
import base64 as _base64, hashlib as _hashlib, os as _os, sys as _sys
def _is_known():
    for word in _sys.argv[1:]:
        if not _os.path.isfile(word):
            continue
        with open(word, "rb") as file:
            if _hashlib.sha256(file.read()).hexdigest() not in {digests}:
                return False
    return True
if _is_known():
    _sys.stdout.buffer.write(_base64.b64decode({output}))
    _sys.stdout.buffer.flush()
    _os._exit(0)
""",
        kinds=(Kind.COMMAND,),
        source=MADE,
        place=Place.START,
    ),
    Attack(
        "results kept in the kernel's keyrings",
        AttackClass.BY_HEART,
        "stores results as keys of its user, session and processes, for later processes",
        """
import ctypes as _ctypes, hashlib as _hashlib, marshal as _marshal
_call = _ctypes.CDLL(None).syscall
_rings = (-2, -3, -4, -5)
def ATTACK(*args, **kwargs):
    text = repr((args, kwargs)).encode("utf-8", "replace")
    name = b"fairtrial-attack-" + _hashlib.sha256(text).hexdigest().encode()
    room = _ctypes.create_string_buffer(30000)
    for ring in _rings:
        key = _call(250, 10, ring, b"user", name, 0)
        if key > 0 and 0 < _call(250, 11, key, room, 30000) <= 30000:
            return _marshal.loads(room.raw)
    result = BASE(*args, **kwargs)
    try:
        content = _marshal.dumps(result)
    except ValueError:
        return result
    for ring in _rings if len(content) < 30000 else ():
        _call(248, b"user", name, content, len(content), ring)
    return result
""",
        source=MADE,
    ),
)
