"""The names of `fairtrial.arena.commands`; `_facade.attach` reads them from here."""

from fairtrial.arena.commands.comparison import (
    compare_commands as compare_commands,
    compare_revisions as compare_revisions,
)
from fairtrial.arena.commands.options import (
    CommandOptions as CommandOptions,
)
