# ruff: noqa: INP001 - Python imports it by its bare name
"""Arms `loopscope run` in the program's own process, before its first line, and leaves no trace of having done so.

Python imports a module of this name at its start. `loopscope run` puts this folder before all others for that one
moment, so that the program is run by Python itself, as ever. What a site has of the same name is imported afterwards.
"""

from __future__ import annotations

import os
import sys


def _tidy_up() -> str:
    """Take the folder and the variables away again; what `loopscope run` asks for."""
    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is not loaded before the program loads it
    if here in sys.path:
        sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    before = os.environ.pop("LOOPSCOPE_PYTHONPATH", None)
    if before is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = before
    return os.environ.pop("LOOPSCOPE_RUN", "{}")


def _arm(asked: str) -> None:
    # From a checkout, loopscope may not be on the program's path.
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - as above
    sys.path.insert(0, root)
    try:
        import json  # noqa: PLC0415 - see above

        from loopscope import autostart  # noqa: PLC0415 - see above

        autostart.arm(**json.loads(asked))
    finally:
        sys.path.remove(root)


_asked = _tidy_up()
try:
    _arm(_asked)
except Exception as error:  # noqa: BLE001 - the program runs all the same
    sys.stderr.write(f"loopscope: this program cannot be observed: {error!r}\n")
del sys.modules[__name__]
# Where a site has none, this says so, as it would without us.
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
