"""The debugger without a screen: a cursor over the batches of a run, and the engine's state wherever it stands."""

from __future__ import annotations
