"""The environment variables that programs and installers see: lists of what is passed on.

Programs get none of what only installers see. A password in the URL of an index goes to the
installer, and so to the build scripts of packages without a wheel; tokens of the job do not.
"""

from collections.abc import Mapping
from typing import Final

# Names are spelled out: a prefix would let UV_PUBLISH_TOKEN through, or PIP_TARGET.
INSTALLER_VARIABLES: Final = frozenset(
    {
        # where packages come from
        "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX",
        "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_STRATEGY",
        "UV_INDEX_URL", "UV_NO_INDEX",
        # the user's own settings of these
        "PIP_CONFIG_FILE", "UV_CONFIG_FILE", "UV_NO_CONFIG",
        # how they are reached, and known for what they are
        "PIP_CERT", "PIP_CLIENT_CERT", "PIP_KEYRING_PROVIDER", "PIP_PROXY", "PIP_TRUSTED_HOST",
        "SSL_CLIENT_CERT", "UV_INSECURE_HOST", "UV_KEYRING_PROVIDER", "UV_NATIVE_TLS",
        "UV_SYSTEM_CERTS",
        # how patiently
        "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "PIP_TIMEOUT",
        "UV_CONCURRENT_DOWNLOADS", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT",
        # where they are kept
        "PIP_CACHE_DIR", "PIP_NO_CACHE_DIR", "UV_CACHE_DIR", "UV_NO_CACHE",
        # which of them are wanted
        "PIP_NO_BINARY", "PIP_ONLY_BINARY", "PIP_PREFER_BINARY", "PIP_UPLOADED_PRIOR_TO",
        "UV_EXCLUDE_NEWER", "UV_NO_BINARY", "UV_NO_BUILD",
    }
)  # fmt: skip

# What is installed there would be taken for installed in the new environment.
OTHER_PACKAGE_VARIABLES: Final = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})

FORCED_FOR_INSTALLERS: Final = {
    "NO_COLOR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    # A setting of the user's that no virtual environment can follow.
    "PIP_USER": "0",
    # A copy stays as it is, whatever becomes of the other names of a file.
    "UV_LINK_MODE": "copy",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}


# uv does not read pip's. Whoever set these means every installer: a name that is looked up at
# another index than the company's own may be anybody's package there.
UV_EQUIVALENTS: Final = {
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "PIP_EXTRA_INDEX_URL": ("UV_EXTRA_INDEX_URL", "UV_INDEX"),
    "PIP_TRUSTED_HOST": ("UV_INSECURE_HOST",),
    "PIP_NO_INDEX": ("UV_NO_INDEX",),
    "PIP_CERT": ("SSL_CERT_FILE",),
}


def make_installer_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make an installer's environment out of ours."""
    passed_on = {name: value for name, value in environ.items() if name in INSTALLER_VARIABLES}
    for of_pip, of_uv in UV_EQUIVALENTS.items():
        if of_pip in environ and not any(name in environ for name in of_uv):
            passed_on[of_uv[0]] = environ[of_pip]
    shared = make_child_environment(environ)
    return (
        {k: v for k, v in shared.items() if k not in OTHER_PACKAGE_VARIABLES}
        | passed_on
        | FORCED_FOR_INSTALLERS
    )


# Names are spelled out because a prefix would let secrets through with them (HF_HOME, HF_TOKEN).
PROGRAM_VARIABLES: Final = frozenset(
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
PROXY_VARIABLES: Final = frozenset({"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})

# A set printed by an evaluator stands in the same order on every run.
DEFAULT_VARIABLES: Final = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
# The protocol is UTF-8 whatever the machine; and nothing is written beside the evaluators.
FORCED_FOR_PROGRAMS: Final = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONUTF8": "1",
}


def make_child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make a program's environment out of ours, without anything that can carry a secret."""
    passed_on = {name: value for name, value in environ.items() if _is_harmless(name, value)}
    return DEFAULT_VARIABLES | passed_on | FORCED_FOR_PROGRAMS


def _is_harmless(name: str, value: str) -> bool:
    if name.upper() in PROXY_VARIABLES:
        return "@" not in value  # user:password@host
    return name in PROGRAM_VARIABLES or name.startswith(LOCALE_PREFIX)
