"""What stands behind a secret's name: assignments, JSON, reprs, headers, parameters of URLs, flags and prose.

Apart from the shapes of tokens, since here the name tells and the value can be anything. A wrong guess costs a word in
a recording, a missed one a leak, so doubt is decided for the mask; but code that only names a secret (`token: str`)
stays legible.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

__all__ = ["MASK", "is_secret_name", "lower", "mask_named", "masked"]

MASK = "<redacted>"
"""What stands in place of a secret."""

_STRONG = "password|passwd|passphrase|passcode|pwd|secret"
_KEY_OF = "api|access|private|signing|encryption|master|account|shared|session|auth|subscription|license"
_KEY_FOR = (
    "openai|anthropic|gemini|mistral|cohere|groq|tavily|serpapi|azure|stripe|twilio|sendgrid|algolia|functions?|"
    "service|client|admin|deploy|hmac|webhook"
)
_PARTS = re.compile(rf"{_STRONG}|token|(?:{_KEY_OF}|{_KEY_FOR})key|credential|authorization|cookie|bearer|sessid|jwt")
_WHOLE = frozenset({"auth", "pass", "pin", "otp", "cvv", "cvc", "xamzsignature", "jsessionid"})
_HARMLESS_NAME = re.compile(
    r"tokeni[sz]|secretar|tokens$|^(?:max|min|num|total)token|(?:page|next|continuation|sync|start|stop|eos|bos|pad)token$|"
    r"(?:name|type|kind|class|model|count|counts|counter|limit|length|len|size|usage|budget|index|idx|ids|position|offset|"
    r"url|uri|path|file|dir|field|column|policy|expiry|expires|expiresin|expiresat|ttl|age|scope|scopes|status|enabled|"
    r"required|valid|method|function|func|callback|handler|provider|factory|manager|parser|encoder|splitter|buffer|"
    r"strategy|regex|pattern|prompt|message|msg|label|title|error|exception|format|mode|option|options|version|level)$"
)
_PUNCTUATION = re.compile(r"[^a-z0-9]+")

_NAMED = re.compile(
    rf"(?:(?i:{_STRONG}|token|(?:{_KEY_OF})[ _-]?key|credential|authorization|cookie|bearer|sessid|jwt|"
    r"(?<![a-z])(?:auth|pass|otp|cvv|cvc)(?![a-z]))[\w.-]{0,40}|"
    r"(?:(?<=[_-])(?i:key)|(?<=[a-z])Key)(?![\w.-])|(?<=[?&])(?i:sig|signature|key|appid)(?==))"
    r"(?P<close>\\*[\"'`]?\]?)"
    r"(?P<between>\s{0,3}(?:=>|:=|==?|:)\s{0,3}|,?\s{1,3}\\*[\"']?value\\*[\"']?\s?[:=]\s?|,\s?(?=\\*[\"'])|\s+is:?\s+|\s+)"
)
_NAMES_BEGIN = (
    "pass", "pwd", "secret", "token", "key", "credential", "auth", "cookie", "bearer", "sessid", "jwt", "otp", "cvv",
    "cvc", "api", "access", "private", "signing", "encryption", "master", "account", "shared", "session",
    "subscription", "license", "sig", "appid",
)  # fmt: skip
_NAME_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_OPENING = re.compile(r"(?:\w{1,20}\()?[bBrRuUfF]{0,2}(\\*(?:\"\"\"|'''|[\"'`]))")
_BARE = re.compile(r"(?:[^\s\"'`<>\\,;&)\]}]|[,;&)\]}](?!\s|\Z|[\w.-]{1,40}=|[\"',;)\]}]))+")
_IN_QUERY = re.compile(r"[^\s\"'`<>\\&#]+")
_TO_LINE_END = re.compile(r"(?:[^\r\n\"'`\\]|\\(?![rn\"'`]))+")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)(?:\s+|%20)")
_HARMLESS_VALUE = re.compile(
    r"(?:\$\{?[A-Z_][A-Z0-9_]*\}?|\$\(.*|\{\{.*|%s|%\(\w+\)s|\*+|\.{3}|-|"
    r"(?i:none|null|nil|true|false|undefined|str|string|int|integer|number|float|bytes|bool|boolean|any|object|optional|secretstr|list|dict|"
    r"required|missing|invalid|incorrect|wrong|expired|empty|unset|redacted|x{3,})|)\Z"
)
_CODE = re.compile(
    r"(?:[A-Za-z_][\w.]*(?:\([^()\n\"']*\)|\[[^\[\]\n\"']*\])|"
    r"(?:self|os|env|config|settings|process|request|args)\.\w[\w.]*(?:\([^()\n]*\)|\[[^\[\]\n]*\])?)"
    r"(?=[\s,;:)=]|\Z)"
)
_OTHER_NAME = re.compile(rf"(?=[\w.]*[_.])(?=[\w.]*(?i:{_STRONG}|token|key|auth|cookie|credential))[A-Za-z_.]+\Z")
"""A name of a secret in its place: code that hands it on."""
_PATH = re.compile(r"[/~.\\]|[A-Za-z]:[\\/]")
_DIGITS = re.compile(r"[\d.,_]{1,7}\Z")
_ODD = re.compile(r"[^A-Za-z'\u2019-]")
"""What tells a password from a word, where both could stand."""
_SHORT_TOKEN, _TOKEN, _LONG_WORD = 5, 8, 14
_TRIPLE = ('"""', "'''")
_FEW_LEVELS = 4_000


@functools.lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether a field, header, flag or variable of this name holds a secret, in any case and style."""
    plain = _PUNCTUATION.sub("", name.lower())
    if plain in _WHOLE:
        return True
    return _PARTS.search(plain) is not None and _HARMLESS_NAME.search(plain) is None


def masked(name: str, value: str) -> str:
    """The value of a secret field, masked; the scheme of a header is kept, and what is no secret stays."""
    if _is_harmless(name, value):
        return value
    scheme = _SCHEME.match(value)
    return f"{scheme[0]}{MASK}" if scheme else MASK


def lower(text: str) -> str:
    """Lower case, letter for letter: positions are those of the text."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(letter.lower() if letter.isascii() else letter for letter in text)


class _Name(NamedTuple):
    """A name in a text and what stands between it and its value."""

    text: str
    between: str
    closed: bool
    """Whether a quote or bracket closes the name."""
    in_query: bool
    """Whether it is a parameter of a URL."""
    at: int
    """Where its value begins."""


def mask_named(text: str) -> str:
    """Mask what stands behind a secret's name: assignments, JSON, reprs, headers, parameters, flags, prose."""
    parts: list[str] = []
    done = 0
    for at in _where_names_begin(text):
        found = _NAMED.match(text, at) if at >= done else None
        if found is None:
            continue
        name = _name(text, found)
        span = _value_span(text, name)
        if span is not None:
            start, end = span
            parts += (text[done:start], masked(name.text, text[start:end]))
            done = end
    return "".join(parts) + text[done:] if parts else text


def _where_names_begin(text: str) -> list[int]:
    """Every place at which `_NAMED` can match, in order."""
    low = lower(text)
    places: set[int] = set()
    for word in _NAMES_BEGIN:
        at = low.find(word)
        while at >= 0:
            places.add(at)
            at = low.find(word, at + 1)
    return sorted(places)


def _name(text: str, found: re.Match[str]) -> _Name:
    head = text[max(0, found.start() - 60) : found.start()]
    head = head[len(head.rstrip(_NAME_LETTERS)) :]
    before = text[found.start() - len(head) - 1 : found.start() - len(head)]
    name = head + text[found.start() : found.start("close")]
    return _Name(name, found["between"], bool(found["close"]), before in {"?", "&"}, found.end())


def _value_span(text: str, name: _Name) -> tuple[int, int] | None:
    """Where the secret begins and ends; None where there is none."""
    if not (is_secret_name(name.text) or name.in_query):
        return None
    if _CODE.match(text, name.at):
        return None
    opening = _OPENING.match(text, name.at)
    if opening is not None:
        span = opening.end(), _closing(text, opening.end(), opening[1])
    else:
        span = name.at, _bare_end(text, name)
    value = text[span[0] : span[1]]
    return span if _is_value(name, value, quoted=opening is not None) else None


def _bare_end(text: str, name: _Name) -> int:
    """Where a value without quotes ends; at its beginning where there is none."""
    low = name.text.lower()
    if name.in_query:
        form = _IN_QUERY
    elif name.between.strip() == ":" and ("authorization" in low or "cookie" in low):
        form = _TO_LINE_END
    elif text[name.at : name.at + 1] in {"{", "[", "("} and name.between.strip() in {":", "="} and "token" not in low:
        return _bracket_end(text, name.at)
    else:
        form = _BARE
    found = form.match(text, name.at)
    return found.end() if found else name.at


def _closing(text: str, start: int, quote: str) -> int:
    """Where the quoted value ends: at the same quote that is not escaped any further, or with its line."""
    end = text.find(quote, start)
    while end > start and text[end - 1] == "\\":
        end = text.find(quote, end + 1)
    line = -1 if quote.endswith(_TRIPLE) else text.find("\n", start)
    ends = [place for place in (end, line) if place >= 0]
    return min(ends, default=len(text))


def _bracket_end(text: str, start: int) -> int:
    depth = 0
    for at in range(start, min(len(text), start + _FEW_LEVELS)):
        depth += (text[at] in "{[(") - (text[at] in "}])")
        if depth == 0:
            return at + 1
    return len(text)


def _is_value(name: _Name, value: str, *, quoted: bool) -> bool:
    """Whether what stands there is the secret, and not prose or code that goes on."""
    low, between, word = name.text.lower(), name.between.strip(), value.strip().rstrip(".,;:!?")
    strong = re.search(rf"{_STRONG}|authorization|cookie", low) is not None
    odd = len(word) >= _SHORT_TOKEN and _ODD.search(word) is not None
    if between == "":
        sure = strong or "key" in low
        told = (sure and (odd or quoted)) or (odd and len(word) >= _TOKEN and ("token" in low or "jwt" in low))
        return name.text.startswith("-") or (told and not name.closed)
    if between == ",":
        return "-" in name.text
    if between.startswith("is"):
        return strong and (quoted or odd or len(word) >= _LONG_WORD)
    if not quoted and name.between != between and _OTHER_NAME.match(word):
        return False
    if quoted or strong or name.in_query or name.between == "=" or "-" in name.text:
        return True
    return not word.isalpha() or len(word) > _LONG_WORD or (len(word) > _SHORT_TOKEN and word[0].islower())


def _is_harmless(name: str, value: str) -> bool:
    low = name.lower()
    if value.endswith(MASK) or value.strip().lower() == low or _HARMLESS_VALUE.match(value.strip()):
        return True
    if low.endswith("pwd") and _PATH.match(value):
        return True
    return "token" in low and _DIGITS.match(value) is not None
