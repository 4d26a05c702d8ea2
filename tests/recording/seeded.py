"""A hundred secrets and more, the same ones each time, in the places where secrets stand."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable
from typing import Any

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
