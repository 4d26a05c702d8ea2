"""How many terminal cells a text takes, by the tables that the terminal's own library uses.

Apart because it is the one thing that presenters take from Rich: were it counted in another way here, a wide
character would move the columns behind it.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "set_cell_size"]
