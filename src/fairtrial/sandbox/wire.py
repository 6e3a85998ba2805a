"""The formats shared with the harness: encoded values, and frames on its channels.

A namespace: `wire.encode`, `wire.pack`. What runs inside the sandbox imports the same modules by
path.
"""

from fairtrial.sandbox.commands import CHANNEL_VARIABLE
from fairtrial.sandbox.harness.codec import (
    Caps,
    dump_encoded,
    encode,
    encode_raised,
)
from fairtrial.sandbox.harness.decoder import decode
from fairtrial.sandbox.harness.frames import (
    HEADER_BYTES,
    pack,
    unpack_header,
)
from fairtrial.sandbox.harness.library_values import TAG, Encoded
from fairtrial.sandbox.harness.packing import (
    PACKED_FIRST,
    join_inputs,
    split_inputs,
    unpack_case,
    unpack_summary,
)
from fairtrial.sandbox.harness.pickled_calls import (
    PICKLED,
    PROTOCOL,
    UnusableError,
    encode_call,
    is_pickled_input,
    read_summary,
)

__all__ = [
    "CHANNEL_VARIABLE",
    "HEADER_BYTES",
    "PACKED_FIRST",
    "PICKLED",
    "PROTOCOL",
    "TAG",
    "Caps",
    "Encoded",
    "UnusableError",
    "decode",
    "dump_encoded",
    "encode",
    "encode_call",
    "encode_raised",
    "is_pickled_input",
    "join_inputs",
    "pack",
    "read_summary",
    "split_inputs",
    "unpack_case",
    "unpack_header",
    "unpack_summary",
]
