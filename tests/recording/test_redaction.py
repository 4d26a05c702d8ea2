from __future__ import annotations

import json
import math
import random
import re
import string
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Control, Event, Gap, Result, RunEnd, Warned, Witness
from loopscope.engine.identity import Identity, call_key
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.errors import UsageError
from loopscope.recording.codec import decode, encode
from loopscope.recording.named import MASK, is_secret_name
from loopscope.recording.preview import preview
from loopscope.recording.redaction import LONGEST_ARGS, Redactor
from loopscope.recording.shapes import mask, may_hold_secret

AT: dict[str, Any] = {"seq": 7, "ts": 1.5, "thread_id": "t", "run_id": None}
KEYED = re.compile(r"~[0-9a-f]{32}\Z")
ALNUM = string.ascii_letters + string.digits


def some(dice: random.Random, count: int, letters: str = ALNUM) -> str:
    return "".join(dice.choices(letters, k=count))


def jwt(dice: random.Random) -> str:
    return f"eyJ{some(dice, 20)}.eyJ{some(dice, 40)}.{some(dice, 43)}"


def private_key(dice: random.Random) -> str:
    lines = "\n".join(some(dice, 64) for _ in range(4))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"


TOKENS: list[Callable[[random.Random], str]] = [
    lambda dice: f"sk-{some(dice, 48)}",
    lambda dice: f"sk-proj-{some(dice, 60)}",
    lambda dice: f"sk-ant-api03-{some(dice, 80)}-{some(dice, 8)}AA",
    lambda dice: f"AKIA{some(dice, 16, string.ascii_uppercase + string.digits)}",
    lambda dice: f"ghp_{some(dice, 36)}",
    lambda dice: f"github_pat_{some(dice, 22)}_{some(dice, 59)}",
    lambda dice: f"AIza{some(dice, 35)}",
    lambda dice: f"ya29.{some(dice, 60)}",
    lambda dice: f"xoxb-{some(dice, 12, string.digits)}-{some(dice, 24)}",
    lambda dice: f"sk_live_{some(dice, 24)}",
    lambda dice: f"hf_{some(dice, 34)}",
    lambda dice: f"glpat-{some(dice, 20)}",
    lambda dice: f"npm_{some(dice, 36)}",
    lambda dice: f"SG.{some(dice, 22)}.{some(dice, 43)}",
    lambda dice: f"dapi{some(dice, 32, '0123456789abcdef')}",
    jwt,
    private_key,
]
PASSWORDS: list[Callable[[random.Random], str]] = [
    lambda dice: f"{some(dice, 6, string.ascii_lowercase)}{some(dice, 3, string.digits)}",
    lambda dice: f"Tr0ub4dor-{some(dice, 5)}!",
    lambda dice: some(dice, 14, string.ascii_lowercase),
    lambda dice: some(dice, 40),
    lambda dice: str(dice.randrange(10**9, 10**10)),
]
# Where a token may stand without a name that tells.
ANYWHERE: list[Callable[[str], str]] = [
    lambda secret: secret,
    lambda secret: f"Incorrect API key provided: {secret}. You can find yours in the settings.",
    lambda secret: f"curl https://api.example.com -H 'Accept: */*' -d '{secret}'",
    lambda secret: f"https://example.com/cb?state=1&code={secret}#top",
    lambda secret: f"it was\n\t{secret}\nall the time",
    lambda secret: json.dumps({"a": {"b": [secret]}}),
    lambda secret: repr({"a": (secret, 1)}),
]
# Where a name tells.
NAMED: list[Callable[[str], str]] = [
    lambda secret: f"Authorization: Bearer {secret}\r\nAccept: */*",
    lambda secret: f"export DB_PASSWORD={secret}",
    lambda secret: f'API_KEY="{secret}" make deploy',
    lambda secret: f"postgres://admin:{secret}@db.internal:5432/app?sslmode=require",
    lambda secret: f"https://example.com/v1?api_key={secret}&page=2",
    lambda secret: json.dumps({"user": "bob", "password": secret}),
    lambda secret: json.dumps({"body": json.dumps({"client_secret": secret, "n": 1})}),
    lambda secret: json.dumps(json.dumps({"body": json.dumps({"clientSecret": secret, "n": 1})})),
    lambda secret: repr({"user": "bob", "passwd": secret}),
    lambda secret: f"Client(host='x', access_token={secret!r}, timeout=3)",
    lambda secret: f"psql --password {secret} -h localhost",
    lambda secret: f"curl -u bob:{secret} https://example.com",
    lambda secret: f"X-Api-Key: {secret}\nHost: example.com",
    lambda secret: f"Cookie: session={secret}; theme=dark",
    lambda secret: f"server:\n  secret_key: {secret}\n  port: 80",
    lambda secret: f"<settings><Password>{secret}</Password></settings>",
    lambda secret: f'login failed for user "bob" with password "{secret}"',
    lambda secret: f"Server=db;UID=sa;PWD={secret};Encrypt=yes",
    lambda secret: f'os.environ["OPENAI_TOKEN"] = "{secret}"',
    lambda secret: f"headers = [('Accept', '*/*'), ('X-Auth-Token', '{secret}')]",
    lambda secret: f"ERROR auth.py:12 invalid credentials (token={secret})",
    lambda secret: f"invalid api key '{secret}'",
    lambda secret: f"requests.get(url, auth=('bob', '{secret}'))",
    lambda secret: f"CREATE USER bob IDENTIFIED BY '{secret}'",
    lambda secret: f"mysql -h db -u root -p{secret} app",
    lambda secret: f"docker login -u bob -p {secret}",
    lambda secret: f"echo {secret} | docker login --password-stdin",
    lambda secret: f"redis-cli -h cache -a {secret} ping",
    lambda secret: f"{{('password', '{secret}')}}",
    lambda secret: f"auth_token: {secret}",
]
# Arguments that are not text.
STRUCTURES: list[Callable[[str], Any]] = [
    lambda secret: {"url": "https://x", "headers": {"Authorization": f"Bearer {secret}"}},
    lambda secret: {"password": secret},
    lambda secret: {"config": [{"db": {"DB-Password": secret}}]},
    lambda secret: {"credentials": {"user": "bob", "value": [secret]}},
    lambda secret: {"env": [{"name": "API_TOKEN", "value": secret}]},
    lambda secret: {"headers": [["X-Api-Key", secret]]},
    lambda secret: {"argv": ["deploy", "--token", secret, "--now"]},
    lambda secret: {"text": f"password: {secret}", "n": 1},
    lambda secret: {1: {"apiKey": secret}, "set": {f"password={secret}"}},
    lambda secret: json.dumps({"session": {"cookie": secret}}),
]


def seeded() -> list[tuple[str, str, Any]]:
    """A hundred secrets and more: each with its text or structure."""
    dice = random.Random(20261130)  # noqa: S311 - the same secrets each time
    cases: list[tuple[str, str, Any]] = []
    for token in TOKENS:
        for place in ANYWHERE:
            secret = token(dice)
            cases.append((f"{secret[:6]} anywhere", secret, place(secret)))
    for password in PASSWORDS:
        for place in NAMED:
            secret = password(dice)
            cases.append((f"{secret[:3]} named", secret, place(secret)))
        for structure in STRUCTURES:
            secret = password(dice)
            cases.append((f"{secret[:3]} in a structure", secret, structure(secret)))
    return cases


SEEDED = seeded()


def pieces(secret: str) -> list[str]:
    """The secret, and of a long one its parts: none of them may be left over."""
    return [part for part in re.split(r"[\s-]+", secret) if len(part) > 4 and part not in {"BEGIN", "PRIVATE"}] or [
        secret
    ]


@pytest.mark.parametrize(("label", "secret", "content"), SEEDED, ids=[f"{n}" for n in range(len(SEEDED))])
def test_no_seeded_secret_is_left(label: str, secret: str, content: Any) -> None:
    """Wherever the secret stands, it is not in the line of any event that carries it."""
    redactor = Redactor()
    text = content if isinstance(content, str) else repr(content)
    events: list[Event] = [
        Batch(**AT, calls=(redactor.call(Call("c", "tool", {"query": content, "n": 1})),), text=redactor.text(text)),
        Batch(**AT, calls=(redactor.call(Call("c", "tool", content)),)),
        Result(
            **AT,
            call_id="c",
            status="error",
            **redactor.preview(content if isinstance(content, str) else [content])._asdict(),
        ),
        redactor.event(Batch(**AT, calls=(Call("c", "tool", {"body": content}),), text=text)),
        redactor.event(Result(**AT, call_id="c", status="ok", content=text, digest="0" * 16)),
        redactor.event(RunEnd(**AT, status="error", reason=text)),
        redactor.event(Warned(**AT, state="queued", text=text)),
        redactor.event(Control(**AT, action="stop", by=text)),
        redactor.event(Witness(**AT, values={"w": content})),
    ]
    for event in events:
        line = encode(event).decode()
        for part in pieces(secret):
            assert part not in line, (label, text)
        assert decode(line.encode()) is not None


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


def test_a_call_without_secrets_is_the_same_object() -> None:
    """Nothing is copied where nothing changes, whatever the arguments are made of."""
    redactor = Redactor()
    for args in (
        {"command": "ls"},
        {"max_tokens": 5, "x": [1, 2.5, None, True, {"y": "z"}]},
        {"note": "the key to the token of the author"},
        '{"command": "ls"}',
        '{"token": null}',
        "",
        None,
        7,
        {},
        {"password": None, "secret": True, "token": 12, "pwd": ""},
        {"x" * 100: 1},
        {"日本": "語"},
    ):
        call = Call("c", "tool", args)
        assert redactor.call(call) is call


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({"x": math.nan}, {"x": "NaN"}),
        ({"x": {1}}, {"x": "{1}"}),
        ({1: "x"}, {"1": "x"}),
        ({"x": "\ud800"}, {"x": r"\ud800"}),
        ({"\ud800": 1}, {r"\ud800": 1}),
        ({"x": 1 + 2j}, {"x": "(1+2j)"}),
        (
            {"pin": 1234, "token": 5, "password": [1, {"a": "b"}, False]},
            {"pin": MASK, "token": 5, "password": [MASK, {"a": MASK}, False]},
        ),
        ('{"password": "a", "b": "é"}', '{"password": "<redacted>", "b": "é"}'),
        ('{"password": "a"', '{"password": "<redacted>"'),
        ({"sk-" + "a1" * 20: 1}, {MASK: 1}),
        (
            {"pair": ["password", "abc"], "list": ["password", "user", "mail"]},
            {"pair": ["password", MASK], "list": ["password", "user", "mail"]},
        ),
        ({"key": "password", "value": 5}, {"key": "password", "value": MASK}),
    ],
)
def test_a_call_that_is_changed_carries_a_digest_of_its_key(args: Any, shown: Any) -> None:
    """The arguments are safe and legible, and the key is the same for the same arguments, and for no others."""
    redactor = Redactor()
    call = redactor.call(Call("c", "tool", args))
    assert call.args == shown
    assert KEYED.match(call.key or "")
    assert redactor.call(Call("d", "tool", args)).key == call.key
    assert redactor.call(Call("c", "tool", {"password": "other"})).key != call.key
    assert redactor.call(call) == call
    again = decode(encode(Batch(**AT, calls=(call,))))
    assert isinstance(again, Batch)
    assert again.calls == (call,)


def test_the_digest_is_of_the_key_under_the_policy_in_force() -> None:
    """Calls that the policy's identity takes for the same have the same digest, others have not."""
    first, second = (Call("c", "http", {"url": "https://x", "token": f"abc{n}"}) for n in (1, 2))
    salient = Redactor()
    assert salient.call(first).key == salient.call(second).key
    full = Redactor(key_of=Identity(Policy(identity="full_args")).key)
    assert full.call(first).key != full.call(second).key
    full.key_of = Identity(DEFAULT).key
    assert full.call(first).key == salient.call(first).key


def test_arguments_that_cannot_be_written_have_a_key_of_their_own() -> None:
    """A circular argument equals no other call, and the exception is named."""
    circular: dict[str, Any] = {}
    circular["self"] = circular
    call = Redactor().call(Call("c7", "tool", circular))
    assert call.key == "!ValueError:c7"
    assert call.args == {"self": "<circular>"}
    assert Redactor().call(Call("c7", "tool", "!ValueError:c7 password=x1y2z")).key is not None


def test_a_raw_text_cannot_pose_as_an_unwritable_key() -> None:
    """Text that looks like such a key would carry its secret into the file."""
    call = Redactor().call(Call("c", "tool", "!password=abc123 :c"))
    assert KEYED.match(call.key or "")


def test_a_key_that_is_there_already_stays() -> None:
    """What was redacted elsewhere keeps the key it was given there."""
    call = Redactor().call(Call("c", "tool", {"password": "abc"}, key="~1234"))
    assert call == Call("c", "tool", {"password": MASK}, key="~1234")


def test_arguments_that_are_too_long_are_cut_and_carry_the_digest() -> None:
    """The beginning of each text stays, so that a person can tell what it was; a secret across the cut does not."""
    redactor = Redactor()
    secret = "sk-" + "a1" * 20
    text = "x" * 1980 + " " + secret + "y " * LONGEST_ARGS
    call = redactor.call(Call("c", "write", {"path": "a.txt", "content": text}))
    assert call.args["path"] == "a.txt"
    assert call.args["content"].startswith("x" * 900)
    assert len(call.args["content"]) < 2100
    assert "sk-" not in call.args["content"]
    assert KEYED.match(call.key or "")
    assert redactor.call(Call("c", "write", {"path": "a.txt", "content": text + "!"})).key == call.key
    assert redactor.call(Call("c", "write_file", {"path": "a.txt", "content": text + "!"})).key != call.key
    many = redactor.call(Call("c", "write", {"rows": ["x" * 100] * 2000}))
    assert len(many.args["rows"]) < 700


def test_arguments_that_fail_when_they_are_looked_at_are_no_trouble() -> None:
    """Arguments that raise when they are read or compared become text."""

    class Array(list[int]):
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None

    class Shrinking(dict[str, int]):
        pass

    assert Redactor().call(Call("c", "tool", {"x": Array([1])})).args == {"x": [1]}
    assert Redactor().call(Call("c", "tool", Shrinking(x=1))).args == {"x": 1}
    assert Redactor().call(Call("c", "tool", {"x": ANY})).args == {"x": "<ANY>"}


def test_a_call_on_a_stack_without_room_is_no_trouble() -> None:
    """Deep in a recursion the arguments cannot be walked; the call then equals no other, and the agent goes on."""
    nested: Any = "end"
    for _ in range(60):
        nested = [nested]

    def dive(levels: int) -> Call:
        return dive(levels - 1) if levels else Redactor().call(Call("c", "tool", {"x": nested}))

    depth = 0
    frame: Any = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    assert dive(sys.getrecursionlimit() - depth - 40) == Call("c", "tool", "…", "!RecursionError:c")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["path", "query", "x", "token"]) | st.text(max_size=4), inner, max_size=4)
        ),
        max_leaves=8,
    )
)
def test_the_key_of_the_recorded_call_is_the_key_of_the_live_one(args: Any) -> None:
    """Written and read again, a call counts as it counted live, under both identities."""
    for policy in (DEFAULT, Policy(identity="full_args")):
        for name in ("bash", "read_file", "write_file"):
            live = Redactor(key_of=Identity(policy).key).call(Call("c", name, args))
            again = decode(encode(Batch(**AT, calls=(live,))))
            assert isinstance(again, Batch)
            assert call_key(again.calls[0], policy) == call_key(live, policy)


def test_verdicts_are_the_same_with_and_without_redaction() -> None:
    """A run full of secrets is warned and stopped at the same batches, live and from its recording."""
    dice = random.Random(7)  # noqa: S311 - the same run each time
    redactor = Redactor()
    shapes: list[Callable[[str], Any]] = [
        lambda s: {"command": f"deploy --token {s}"},
        lambda s: {"query": "x", "password": s},
        lambda s: {"x": {1: s}},
    ]
    secrets = [some(dice, 12) for _ in range(4)]
    plainly, safely, replayed = LoopDetector(), LoopDetector(), LoopDetector()
    actions = set[str]()
    for seq in range(400):
        args = dice.choice(shapes)(dice.choice(secrets))
        call = Call(f"c{seq}", dice.choice(["bash", "http"]), args)
        at = AT | {"seq": seq, "run_id": dice.choice(["r1", "r2"])}
        original = Batch(**at, calls=(call,))
        safe = Batch(**at, calls=(redactor.call(call),))
        again = decode(encode(safe))
        assert again is not None
        (expected,) = plainly.observe(original)
        (live,) = safely.observe(safe)
        (replay,) = replayed.observe(again)
        assert live == replay
        for decision in (live, replay):
            assert (decision.action, decision.layer, decision.tool, decision.count, decision.hash_count) == (
                expected.action,
                expected.layer,
                expected.tool,
                expected.count,
                expected.hash_count,
            )
        actions.add(expected.action)
    assert actions == {"pass", "warn", "hard_stop"}


def test_a_result_with_a_secret_has_a_digest_that_cannot_be_guessed() -> None:
    """Equal results still have equal digests, but not that of the text, which a short secret would not survive."""
    redactor = Redactor()
    first, second = redactor.preview("pin: 1, password: 1234"), redactor.preview("pin: 1, password: 1234")
    assert first == second
    assert first.content == f"pin: 1, password: {MASK}"
    assert first.size == 22
    assert re.fullmatch(r"[0-9a-f]{16}", first.digest)
    assert first.digest != preview("pin: 1, password: 1234").digest
    assert redactor.preview("pin: 1, password: 1235").digest != first.digest
    harmless = "the token of the author\ud800"
    assert redactor.preview(harmless) == preview(harmless)._replace(content=r"the token of the author\ud800")


def test_a_secret_across_the_cut_of_a_preview_is_not_left_in_part() -> None:
    """The part of a token that would be too short to be known is not recorded either."""
    redactor = Redactor()
    token = "ghp_" + "a1" * 18
    for start in range(1990, 2001):
        shown = redactor.preview("x" * (start - 1) + " " + token + " tail" * 500)
        assert "ghp_" not in shown.content
    shown = redactor.preview("x" * 1990 + " " + token + " tail")
    assert "ghp_" not in shown.content
    assert len(redactor.preview("plain text " * 500).content) == 2000
    assert redactor.text("password=abc1 and more", limit=18) == f"password={MASK}"[:18]


def test_events_without_secrets_are_the_same_objects() -> None:
    """Nothing is copied where nothing changes; kinds without text are given back at once."""
    redactor = Redactor()
    for event in (
        Batch(**AT, calls=(Call("c", "bash", {"command": "ls"}),), text="the token"),
        Result(**AT, call_id="c", status="ok", content=""),
        Witness(**AT, values={"open": [1, 2]}),
        Gap(**AT, lost=1),
    ):
        assert redactor.event(event) is event


def test_an_event_keeps_no_digest_of_what_was_masked() -> None:
    """A digest made elsewhere is keyed as well; one that is not there is not invented."""
    redactor = Redactor()
    event = Result(**AT, call_id="c", status="ok", content="password=abc1", digest="0" * 16)
    assert redactor.event(event).digest not in {None, "0" * 16}
    assert redactor.event(Result(**AT, call_id="c", status="ok", content="password=abc1")).digest is None


def test_patterns_of_the_user_are_masked_everywhere() -> None:
    """In arguments, names of arguments, results and texts, beside the rules that are built in."""
    redactor = Redactor([r"CASE-\d+", "(?i)acme"])
    call = redactor.call(Call("c", "tool", {"q": "see CASE-12 and password=abc1", "ACME": ["Acme", 1]}))
    assert call.args == {"q": f"see {MASK} and password={MASK}", MASK: [MASK, 1]}
    assert redactor.preview("case CASE-99").content == f"case {MASK}"
    untouched = Call("c", "tool", {"q": "nothing here"})
    assert redactor.call(untouched) is untouched


def test_patterns_that_are_wrong_are_told_all_at_once() -> None:
    """The error names each pattern and says what is wrong with it."""
    with pytest.raises(UsageError) as caught:
        Redactor(["(", "x*", "fine", 5])  # type: ignore[list-item]
    message = str(caught.value)
    assert "'(' is no regular expression: missing )" in message
    assert "'x*' matches the empty text" in message
    assert "5 is no regular expression" in message
    assert "fine" not in message
    with pytest.raises(UsageError):
        Redactor("a*")
