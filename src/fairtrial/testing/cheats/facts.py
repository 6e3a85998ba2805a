"""What an attacker learns of a target: types of results, output, answers, constant inputs.

Functions are probed by a candidate that describes its calls in exceptions, which rejections quote:
an adversary who may submit several candidates learns the same.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairtrial.arena import Judgement, Rejection
from fairtrial.testing.cheats.attack import Attack, AttackClass, Harm, Kind
from fairtrial.testing.cheats.targets import AttackTarget

_CALLABLE = {"list", "dict", "set", "frozenset", "tuple", "str", "bytes", "int", "float", "bool"}
PROBE = Attack(
    "probe",
    AttackClass.EXPECTED,
    "describes each call in an exception",
    """
import base64 as _base64, contextlib as _contextlib, hashlib as _hashlib, io as _io
import marshal as _marshal, sys as _sys
def _has_floats(value):
    if type(value) in (list, tuple, set):
        return any(map(_has_floats, list(value)[:50]))
    if type(value) is dict:
        return any(map(_has_floats, list(value.values())[:50]))
    return type(value) is float or getattr(getattr(value, "dtype", None), "kind", "") == "f"
def _length(value):
    try:
        return len(value)
    except TypeError:
        return 0
def ATTACK(*args, **kwargs):
    if "pytest" in _sys.modules:
        return BASE(*args, **kwargs)
    text = repr((args, kwargs)).encode("utf-8", "replace")
    lengths = max([_length(item) for item in args] or [0])
    arrays = any(type(item).__name__ == "ndarray" for item in args)
    output = _io.StringIO()
    with _contextlib.redirect_stdout(output):
        try:
            result = BASE(*args, **kwargs)
        except Exception as error:
            result = error
    answer = ""
    try:
        content = _marshal.dumps(result)
        answer = _base64.b64encode(content).decode() if len(content) < 1200 else ""
    except ValueError:
        pass
    report = "FT type=%s floats=%d prints=%d arrays=%d longest=%d digest=%s answer=%s END"
    raise RuntimeError(report % (
        type(result).__name__, _has_floats(result), bool(output.getvalue()), arrays, lengths,
        _hashlib.sha256(text).hexdigest()[:16], answer))
""",
    harm=Harm.WRONG,
)
"""Describes the calls of a function; it is judged first and always rejected."""
_REPORT = re.compile(
    r"FT type=(?P<type>\w+) floats=(?P<floats>\d) prints=(?P<prints>\d) arrays=(?P<arrays>\d) "
    r"longest=(?P<longest>\d+) digest=(?P<digest>\w{16})(?: answer=(?P<answer>[\w+/=]*) END)?"
)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What is known of a target.

    kinds: the kinds of problem that it is; function attacks that need another are left out
    result_type: the name of the type of its results; empty if it isn't known
    longest: the length of the longest argument that was seen
    digests: a digest of the arguments of each call that was seen, or of the files of a command
    answers: known results by digest, marshaled, in base64
    output: what the command prints
    hidden: files of the problem that candidates must not see
    memory_mb: the memory limit of a check
    is_sandboxed: whether candidates run in a full sandbox; some attacks are harmless only there
    """

    kinds: frozenset[Kind] = frozenset((Kind.FUNCTION,))
    result_type: str = ""
    longest: int = 0
    digests: tuple[str, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    output: bytes = b""
    hidden: tuple[str, ...] = ()
    memory_mb: int = 2048
    is_sandboxed: bool = False

    @property
    def has_constant_inputs(self) -> bool:
        """Whether all calls that were seen had the same arguments."""
        is_command = Kind.COMMAND in self.kinds
        return not is_command and len(self.digests) > 1 and len(set(self.digests)) == 1

    def fill(self, template: str, target: AttackTarget) -> str:
        """Return a template with what is known in place of its words in braces."""
        name = self.result_type
        empty = f"{name}()" if name in _CALLABLE else "None"
        if name == "ndarray":
            empty = '__import__("numpy").zeros(1)'
        words = {
            "{answers}": repr(self.answers),
            "{digests}": repr(list(self.digests)),
            "{output}": repr(base64.b64encode(self.output).decode("ascii")),
            "{result_type}": name if name in _CALLABLE else "object",
            "{empty}": empty,
            "{longest}": str(self.longest),
            "{memory_mb}": str(self.memory_mb),
            "{hidden}": repr(list(self.hidden)),
            "{is_sandboxed}": repr(self.is_sandboxed),
        }
        for word, text in words.items():
            template = template.replace(word, text)
        return template


def read_probe(judgement: Judgement | Rejection | None, facts: TargetFacts) -> TargetFacts:
    """Return what the rejection of a probe tells of its function; `facts` if that is nothing."""
    matches = [match for text in list_texts(judgement) for match in _REPORT.finditer(text)]
    if not matches:
        return facts
    first = matches[0]
    kinds = {Kind.FUNCTION}
    types = {match["type"] for match in matches}
    kinds |= {Kind.LIST} if "list" in types else set()
    kinds |= {Kind.DICT} if "dict" in types else set()
    kinds |= {Kind.NUMPY} if "ndarray" in types or int(first["arrays"]) else set()
    kinds |= {Kind.FLOATS} if any(int(match["floats"]) for match in matches) else set()
    kinds |= {Kind.PRINTS} if any(int(match["prints"]) for match in matches) else set()
    return TargetFacts(
        kinds=frozenset(kinds),
        result_type=first["type"],
        longest=max(int(match["longest"]) for match in matches),
        digests=tuple(_list_digests(judgement)),
        answers={match["digest"]: match["answer"] for match in matches if match["answer"]},
        hidden=facts.hidden,
        memory_mb=facts.memory_mb,
        is_sandboxed=facts.is_sandboxed,
    )


def _list_digests(judgement: Judgement | Rejection | None) -> Iterable[str]:
    """Yield the digest of the arguments of each failed call."""
    rejection = judgement.rejection if isinstance(judgement, Judgement) else judgement
    for failure in rejection.failures if rejection else ():
        match = _REPORT.search(failure.message)
        if match:
            yield match["digest"]


def list_texts(judgement: Judgement | Rejection | None) -> Iterable[str]:
    """Yield the texts of a rejection: its message, and the message of each failure."""
    rejection = judgement.rejection if isinstance(judgement, Judgement) else judgement
    if rejection is None:
        return
    yield rejection.message
    for failure in rejection.failures:
        yield failure.message
        for difference in failure.differences:
            yield difference.actual
