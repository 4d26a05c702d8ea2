"""What secrets look like where no name tells: the tokens of many services, keys, user names with passwords in URLs.

Apart from the redactor, which walks through events; here is only text, and the quick look that most text gets.
"""

from __future__ import annotations

import base64
import binascii
import re

from loopscope.recording.named import MASK, is_secret_name, mask_named, masked

__all__ = ["mask", "may_hold_secret"]

# A literal that must be there before its pattern is tried; each group has something in common that is looked for first.
_UNDERSCORED = {
    "k_live_": r"[srp]k_live_[A-Za-z0-9]{10,}",  # Stripe
    "k_test_": r"[srp]k_test_[A-Za-z0-9]{10,}",
    "whsec_": r"whsec_[A-Za-z0-9+/=]{16,}",
    "ghp_": r"ghp_[A-Za-z0-9]{20,}",  # GitHub
    "gho_": r"gho_[A-Za-z0-9]{20,}",
    "ghu_": r"ghu_[A-Za-z0-9]{20,}",
    "ghs_": r"ghs_[A-Za-z0-9]{20,}",
    "ghr_": r"ghr_[A-Za-z0-9]{20,}",
    "github_pat_": r"github_pat_\w{20,}",
    "glsa_": r"glsa_\w{20,}",  # Grafana
    "hf_": r"hf_[A-Za-z0-9]{16,}",  # Hugging Face
    "r8_": r"r8_[A-Za-z0-9]{20,}",  # Replicate
    "gsk_": r"gsk_[A-Za-z0-9]{20,}",  # Groq
    "lsv2_": r"lsv2_\w{20,}",  # LangSmith
    "pcsk_": r"pcsk_\w{20,}",  # Pinecone
    "npm_": r"npm_[A-Za-z0-9]{20,}",
    "_v1_": r"do[opr]_v1_[a-f0-9]{32,}",  # DigitalOcean
    "shp": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # Shopify
    "lin_api_": r"lin_api_[A-Za-z0-9]{20,}",  # Linear
    "ntn_": r"ntn_[A-Za-z0-9]{20,}",  # Notion
    "sbp_": r"sbp_[a-f0-9]{32,}",  # Supabase
    "dckr_": r"dckr_\w{3}_[\w-]{20,}",  # Docker
    "figd_": r"figd_[\w-]{20,}",  # Figma
}
_HYPHENED = {
    "sk-": r"sk-[\w-]{16,}",  # OpenAI, Anthropic, OpenRouter, Langfuse
    "pk-lf-": r"pk-lf-[\w-]{16,}",
    "glpat-": r"glpat-[\w-]{16,}",  # GitLab
    "xox": r"xox[a-z]-[\w-]{10,}",  # Slack
    "xapp-": r"xapp-[\w-]{10,}",
    "GOCSPX-": r"GOCSPX-[\w-]{16,}",  # Google
    "xai-": r"xai-[\w-]{20,}",
    "pplx-": r"pplx-[A-Za-z0-9]{20,}",  # Perplexity
    "tvly-": r"tvly-[\w-]{16,}",  # Tavily
    "nvapi-": r"nvapi-[\w-]{20,}",  # NVIDIA
    "pypi-": r"pypi-[\w-]{16,}",
    "sq0": r"sq0[a-z]{3}-[\w-]{20,}",  # Square
    "NRAK-": r"NRAK-[A-Z0-9]{20,}",  # New Relic
    "AGE-SECRET-KEY-": r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
}
_DOTTED = {
    "ya29.": r"ya29\.[\w-]{16,}",  # Google
    "SG.": r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    "hvs.": r"hvs\.[\w-]{20,}",  # Vault
    "eyJ": r"eyJ[\w-]{5,2000}\.[\w-]{5,}(?:\.[\w-]*)*",  # JSON web tokens
    "hooks.slack.com/": r"hooks\.slack\.com/(?:services|workflows)/[\w/]+",
}
_CAPITALS = {
    "AKIA": r"AKIA[A-Z0-9]{12,}",  # AWS
    "ASIA": r"ASIA[A-Z0-9]{12,}",
    "AIza": r"AIza[\w-]{30,}",  # Google
    "SK": r"SK[a-f0-9]{32}",  # Twilio
    "EAA": r"EAA[\w-]{40,}",  # Square, Facebook
    ":AA": r"\d{8,10}:AA[\w-]{30,}",  # Telegram
    "ATATT": r"ATATT[\w=-]{20,}",  # Atlassian
    "b3BlbnNza": r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=\s\\]*",  # the inside of an OpenSSH key
}
_BARE_TOKENS = {
    "dapi": r"dapi[a-f0-9]{32}",  # Databricks
    "1//0": r"1//0[\w-]{20,}",  # Google
}
_SHAPES = {
    needle: re.compile(rf"(?<![A-Za-z0-9])(?:{shape})")
    for group in (_UNDERSCORED, _HYPHENED, _DOTTED, _CAPITALS, _BARE_TOKENS)
    for needle, shape in group.items()
}
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_AWS_SECRET = re.compile(r"(?<![\w/+=-])(?=[\w/+]*[a-z])(?=[\w/+]*[A-Z])(?=[\w/+]*\d)[A-Za-z0-9/+]{40}(?![\w/+=-])")
_USER_INFO = re.compile(r"(?<=://)(?:(?P<user>[^\s:/@\"'<>]*:)[^\s/\"'<>]+|[^\s:/@\"'<>]{16,})(?=@)")
_BEARER = re.compile(r"(?i)\b(bearer(?:\s|%20|[:=+]){1,3}\\*[\"']?)([^\s\"'<>,;()\[\]{}\\]{6,})")
_BASIC = re.compile(r"(?i)\b(basic(?:\s|%20|\+){1,3})([A-Za-z0-9+/]{6,}={0,2})")
_NOT_A_TOKEN = frozenset({"authentication", "authorization", "format", "header", "scheme", "string", "tokens"})
_COMMAND_LINE = re.compile(
    r"((?:^|\s)(?:-u|--user|--proxy-user)[\s=]+[\"']?[^\s:\"']+:|"
    r"\b(?:sshpass\s+-p|(?:mysql|mariadb)\w*\s(?:[^\n|;]{0,200}\s)?-p(?=\S)|docker\s+login\s(?:[^\n|;]{0,200}\s)?-p\s|"
    r"redis-cli\s(?:[^\n|;]{0,200}\s)?-a\s)\s*[\"']?|(?i:\bidentified\s+by\s+)[\"'])([^\s\"']+)"
)
_PIPED = re.compile(r"(\becho\s+(?:-n\s+)?)(\S+)(?=\s*\|[^\n]{0,200}--password-stdin)")
_COMMANDS = (" -u", "--user", "sshpass", "mysql", "mariadb", "docker", "redis-cli", "identified")
_PAIR = re.compile(
    r"[(\[]\s?(?P<quote>\\*[\"'])(?P<name>[\w-]{3,64})(?P=quote)\s?,\s?b?(?P=quote)(?P<value>[^\"'\n\\]+)(?=(?P=quote)\s?[)\]])"
)
_ELEMENT = re.compile(r"<(?:[\w-]+:)?(?P<name>[\w-]+)(?:\s[^<>]*)?>(?P<value>[^<]+)(?=</)")

_WORDS = (
    "pass", "pwd", "secret", "token", "key", "auth", "cookie", "credential", "bearer", "basic", "sessid", "jwt", "aws",
    "sig=", "signature=", "appid=", "otp", "cvv", "cvc",
    *_COMMANDS,
    *_BARE_TOKENS,
)  # fmt: skip


def may_hold_secret(text: str) -> bool:
    """Whether `mask` could change the text: quick, never wrongly False, often wrongly True."""
    low = text.lower()
    has = text.__contains__
    return (
        any(map(low.__contains__, _WORDS))
        or (low != text and any(map(has, _CAPITALS)))
        or ("_" in text and any(map(has, _UNDERSCORED)))
        or ("-" in text and any(map(has, _HYPHENED)))
        or ("." in text and any(map(has, _DOTTED)))
        or ("@" in text and "://" in text)
    )


def mask(text: str) -> str:
    """The text with every secret in it masked."""
    text = mask_named(_mask_fields(_mask_tokens(text)))
    low = text.lower()
    if "bearer" in low:
        text = _BEARER.sub(lambda found: found[0] if found[2].lower() in _NOT_A_TOKEN else found[1] + MASK, text)
    if "basic" in low:
        text = _BASIC.sub(lambda found: found[1] + MASK if _is_user_and_password(found[2]) else found[0], text)
    return text


def _mask_tokens(text: str) -> str:
    """What is known by its own shape."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(MASK, text)
    for needle, shape in _SHAPES.items():
        if needle in text:
            text = shape.sub(MASK, text)
    if "://" in text:
        text = _USER_INFO.sub(lambda found: f"{found['user'] or ''}{MASK}", text)
    return _AWS_SECRET.sub(MASK, text) if "aws" in text.lower() else text


def _mask_fields(text: str) -> str:
    """What is known by its place: in a command line, an element, or a pair."""
    low = text.lower()
    if any(map(low.__contains__, _COMMANDS)):
        text = _COMMAND_LINE.sub(rf"\1{MASK}", text)
    if "--password-stdin" in low:
        text = _PIPED.sub(rf"\1{MASK}", text)
    if "</" in text:
        text = _ELEMENT.sub(_masked_field, text)
    return _PAIR.sub(_masked_field, text)


def _is_user_and_password(text: str) -> bool:
    try:
        return b":" in base64.b64decode(text, validate=True)
    except binascii.Error:
        return False


def _masked_field(found: re.Match[str]) -> str:
    if not (is_secret_name(found["name"]) and may_hold_secret(found["name"])):
        return found[0]
    return found[0][: found.start("value") - found.start()] + masked(found["name"], found["value"])
