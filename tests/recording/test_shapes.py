"""Secrets in text: by their shape and by the names before them, and what is no secret."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.recording.named import MASK, is_secret_name
from loopscope.recording.redaction import Redactor
from loopscope.recording.shapes import mask, may_hold_secret


@pytest.mark.parametrize(
    "text",
    [
        "def f(token: str, api_key: Optional[str] = None) -> Token: ...",
        "password is required",
        "Unexpected token '<' in JSON at position 0",
        "max_tokens: 4096, input_tokens=12, tokenizer=gpt2",
        "password=password, token=get_token(), secret: self.secret",
        "PWD=/home/me OLDPWD=/tmp",
        "use basic authentication or bearer authentication",
        "https://example.com/a?page=2&key_name=x",
        "the secretary has the key to the passage",
        "api_key=$API_KEY --token ${TOKEN} password=*** secret=%s",
        "run--0190f1a2-1111-7abc-8def-0123456789ab call_AbCdEf0123456789AbCdEf01",
        "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0",
        "from auth import login  # pass the test",
        "task-management-process-improvements",
        "self.token_counter = token_counter; token = access_token; password: settings.db_password",
        "pass `on_error2` to it, or pass 'model_provider=x1y2' instead",
        "password is required, the secret is optional",
        'to pass "x1y2z3"\n"password"\n  "next line 12345"',
        "Unexpected token 'x' in it; the token bucket is full",
        "",
    ],
)
def test_text_that_only_speaks_of_secrets_stays(text: str) -> None:
    """Code, commit hashes, ids of calls, counts of tokens and prose are left legible."""
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MASK}"),
        ("Basic dXNlcjpwYXNz", f"Basic {MASK}"),
        ("basic understanding", "basic understanding"),
        ("Bearer abcdef123", f"Bearer {MASK}"),
        ("the password is hunter2.", f"the password is {MASK}"),
        ("https://0123456789abcdef0123@sentry.io/1", f"https://{MASK}@sentry.io/1"),
        ('"password": 12345', f'"password": {MASK}'),
        ('"credentials": {"a": ["b", {"c": 1}]}, "d": 2', f'"credentials": {MASK}, "d": 2'),
        ('"credentials": {"cut off', f'"credentials": {MASK}'),
        ('password="cut off', f'password="{MASK}'),
        (r'"password": "a\"b", "x": 1', f'"password": "{MASK}", "x": 1'),
        ("password='''a'b''' x", f"password='''{MASK}''' x"),
        ("password=SecretStr('abc') x", f"password=SecretStr('{MASK}') x"),
        ("password=", "password="),
        ("the password is correcthorsebattery", f"the password is {MASK}"),
        ("invalid token abcdef12345 in it", f"invalid token {MASK} in it"),
        ('password="cut off\nnext line', f'password="{MASK}\nnext line'),
        ("auth=(a, (b, c)) x", f"auth={MASK} x"),
        ("token=abc, secret=def", f"token={MASK}, secret={MASK}"),
        ("aws wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", f"aws {MASK}"),
        ("<name>bob</name><token>abc</token>", f"<name>bob</name><token>{MASK}</token>"),
        ("sshpass -p 'abc' ssh x", f"sshpass -p '{MASK}' ssh x"),
        ("İİİ token=abc1 x", f"İİİ token={MASK} x"),
        ("-----BEGIN PRIVATE KEY-----\nabc", MASK),
        ("form: password=a&b&user=c", f"form: password={MASK}&user=c"),
        ('OPENAI_KEY="x1y2"; cache_key="x1y2"', f'OPENAI_KEY="{MASK}"; cache_key="x1y2"'),
        (
            "x-functions-key: x1y2, clientKey=x1y2, monkey=x1y2",
            f"x-functions-key: {MASK}, clientKey={MASK}, monkey=x1y2",
        ),
        ("the service key is needed, primary_key: id", "the service key is needed, primary_key: id"),
        ("AGE-SECRET-KEY-1" + "Q" * 58, MASK),
        ("https://x/?a=1&sig=a%2Fb&b=2", f"https://x/?a=1&sig={MASK}&b=2"),
        ("pass\ud800word=x", r"pass\ud800word=x"),
    ],
)
def test_what_is_masked_and_what_stays_around_it(text: str, shown: str) -> None:
    """The name, the scheme and what follows stay; the same text again is not changed any more."""
    redactor = Redactor()
    assert redactor.text(text) == shown
    assert redactor.text(shown) == shown


PARTS = [
    "password",
    "token",
    "API_KEY",
    "=",
    ":",
    " ",
    '"',
    "'",
    "\\",
    "abc1",
    "{",
    "}",
    "<",
    ">",
    "://",
    "@",
    "Bearer ",
    "\n",
    ",",
    "?",
    "&",
    "is",
]


@given(st.lists(st.sampled_from(PARTS)).map("".join) | st.text(st.characters(codec=None)))
def test_any_text_can_be_masked(text: str) -> None:
    """No text makes the rules fail, and the quick look never overlooks what they would change."""
    shown = mask(text)
    assert may_hold_secret(text) or shown == text
    encoded = Redactor().text(text)
    encoded.encode()


@pytest.mark.parametrize(
    "part",
    [
        "token=",
        "-eyJ",
        "<a",
        "<a></",
        "://",
        ":// @",
        "('a',",
        "mysql ",
        "docker login ",
        "echo x | ",
        'password="\\',
        "password: {[",
        " -u ",
        "password  ",
        "Bearer ",
    ],
)
def test_hostile_text_is_masked_in_linear_time(part: str) -> None:
    """A hundred thousand characters made to be slow take no more than a second or two of the processor."""
    text = part * (100_000 // len(part))
    start = time.process_time()
    mask(text)
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("userPassword", True),
        ("X-Api-Key", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("accessToken", True),
        ("Set-Cookie", True),
        ("auth", True),
        ("pin", True),
        ("author", False),
        ("max_tokens", False),
        ("nextPageToken", False),
        ("token_type", False),
        ("secret_name", False),
        ("keyboard", False),
        ("path", False),
        ("", False),
    ],
)
def test_names_tell_in_any_case_and_style(name: str, secret: bool) -> None:
    """Camel, snake, kebab and header case are one."""
    assert is_secret_name(name) is secret
