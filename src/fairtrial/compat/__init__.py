"""A drop-in replacement for design-research-experiments: ``import fairtrial.compat as dre``.

Exports every name of *design-research-experiments* 0.3: records and functions of `fairtrial.study`,
and the ready-made studies that live here. The extension in this package makes fairtrial read the
older keys of study files, and call agents with the keyword arguments of that library.
"""

from fairtrial import __version__ as __version__
from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)
