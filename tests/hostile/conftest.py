"""The command line, as the tests of its verbs call it."""

from __future__ import annotations

from tests.cli.conftest import cli

__all__ = ["cli"]
