"""What evaluators' programs see of our environment: a list of what is let through, no more."""

from collections.abc import Mapping
from typing import Final

# Names are spelled out because a prefix would let secrets through with them (HF_HOME, HF_TOKEN).
PASSED_ON: Final = frozenset(
    {
        # where programs, libraries and modules are
        "PATH", "LD_LIBRARY_PATH", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV",
        # whose files these are, and where they are kept
        "HOME", "LOGNAME", "TEMP", "TMP", "TMPDIR", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        # language, time and whether a human looks on
        "CI", "LANG", "LANGUAGE", "NO_COLOR", "TZ",
        # certificates of the company's proxy
        "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        # what makes two runs alike
        "PYTHONHASHSEED", "SOURCE_DATE_EPOCH",
    }
)  # fmt: skip
LOCALE_PREFIX: Final = "LC_"
PROXIES: Final = frozenset({"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})

# A set printed by an evaluator stands in the same order on every run.
DEFAULTS: Final = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
# The protocol is UTF-8 whatever the machine; and nothing is written beside the evaluators.
FORCED: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make a program's environment out of ours, without anything that can carry a secret."""
    passed_on = {name: value for name, value in environ.items() if _is_harmless(name, value)}
    return DEFAULTS | passed_on | FORCED


def _is_harmless(name: str, value: str) -> bool:
    if name.upper() in PROXIES:
        return "@" not in value  # user:password@host
    return name in PASSED_ON or name.startswith(LOCALE_PREFIX)
