from __future__ import annotations

import pytest

from loopscope.sources.langgraph_sqlite.failures import failure


@pytest.mark.parametrize(
    ("text", "error_type"),
    [
        ("Error: ValueError('no such table: users')\n Please fix your mistakes.", "ValueError"),
        ("Error executing tool 'look' with kwargs {} with error:\n KeyError: 'x'\n Please fix", "KeyError"),
        ("Error invoking tool 'look' with kwargs {} with error:\n query: Field required\n", "ToolInvocationError"),
        ("Error: look is not a valid tool, try one of [search].", None),
        ("ERROR: permission denied", None),
        ("  tool error: timed out", None),
        ("Traceback (most recent call last):\n  File ...", None),
        ('sqlite3.OperationalError: near "SELEC": syntax error', "OperationalError"),
        ("ReadTimeout: after 30 s", "ReadTimeout"),
        ("HTTPError(404)", "HTTPError"),
        ("Exception: oh", None),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", None),
        ("<error>no</error>", None),
        ("exit code: 2\nmake: ***", None),
        ("Command failed with exit code 1", None),
        ('{"error": "File not found: a.txt"}', None),
        ('{"error": "FileNotFoundError: a.txt"}', "FileNotFoundError"),
        ('{"error": {"code": 404}}', None),
        (' {"success": false, "data": null}', None),
        ('{"ok": false}', None),
        ('{"isError": true}', None),
        ('{"exit_code": 1, "output": ""}', None),
        ('{"status": "Failed"}', None),
    ],
)
def test_errors_that_only_the_text_tells_of(text: str, error_type: str | None) -> None:
    """Tools that catch their own errors return them as ordinary results."""
    assert failure(text, "success") == (True, error_type)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "found 3 errors in the log",
        "Errors are values, says the page.",
        "Error handling in Go",
        "errors: 0",
        "The ValueError: class is documented here",
        "exit code: 0",
        '{"error": null, "data": [1]}',
        '{"errors": [], "success": true, "exit_code": 0}',
        '{"status": "ok", "returncode": true}',
        '{"error": "unterminated',
        '{"a": ' + "[" * 100_000,
        '["error"]',
        '{"error": "' + "x" * 1_000_001 + '"}',
    ],
)
def test_text_about_errors_is_no_error(text: str) -> None:
    """Pages and reports about errors are what was asked for."""
    assert failure(text) == (False, None)


@pytest.mark.parametrize(
    ("text", "error_type"),
    [("it did not work", None), ("ValueError: x", "ValueError"), ("", None)],
)
def test_a_status_of_error_is_believed(text: str, error_type: str | None) -> None:
    """LangGraph's own word for a failure, whatever the text is."""
    assert failure(text, "error") == (True, error_type)


def test_long_texts_cost_little() -> None:
    """A result of megabytes is looked at where errors begin."""
    assert failure("a" * 5_000_000) == (False, None)
    assert failure("Error invoking tool " + "with error" * 500_000, "error") == (True, None)
