"""Lists of the environment variables that are passed to programs and to installers.

Programs get no installer variables. A password in an index URL reaches the installer, and with
``allow_source`` the build scripts of packages; the tokens of the CI job and proxies with a password
do not.
"""

import os
from collections.abc import Mapping
from typing import Final

from agentci._util.workspace import Workspace

# Lists of folders with programs and libraries.
SEARCH_PATHS: Final = ("LD_LIBRARY_PATH", "PATH")
# Folders with settings of git and Docker, which can name programs to start.
SETTINGS_FOLDERS: Final = ("DOCKER_CONFIG", "HOME", "XDG_CONFIG_HOME")


def select_outer_folders(environ: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
    """Return ``environ`` with only the folders outside the workspace in its search paths.

    A pull request can put programs into the others. ``PATH`` is always set: without folders, the
    system would search the working directory.
    """
    found = {"PATH": os.defpath, **environ}
    for name in SEARCH_PATHS:
        folders = found.pop(name, "").split(os.pathsep)
        outside = os.pathsep.join(filter(workspace.is_outside, folders))
        if outside or name == "PATH":
            found[name] = outside or os.defpath
    return found


def make_own_environment(environ: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
    """Make the environment of programs that agentci starts for itself, outside the sandbox.

    Neither these programs nor their settings come from the workspace.
    """
    return {
        name: value
        for name, value in select_outer_folders(environ, workspace).items()
        if name not in SETTINGS_FOLDERS or workspace.is_outside(value)
    }


# Full names only: a prefix would also pass UV_PUBLISH_TOKEN or PIP_TARGET.
INSTALLER_VARIABLES: Final = frozenset(
    {
        # package sources
        "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX",
        "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_STRATEGY",
        "UV_INDEX_URL", "UV_NO_INDEX",
        # configuration files with the user's sources
        "PIP_CONFIG_FILE", "UV_CONFIG_FILE", "UV_NO_CONFIG",
        # proxies, certificates and credentials for the sources
        "PIP_CERT", "PIP_CLIENT_CERT", "PIP_KEYRING_PROVIDER", "PIP_PROXY", "PIP_TRUSTED_HOST",
        "SSL_CLIENT_CERT", "UV_INSECURE_HOST", "UV_KEYRING_PROVIDER", "UV_NATIVE_TLS",
        "UV_SYSTEM_CERTS",
        # timeouts, retries and concurrency
        "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "PIP_TIMEOUT",
        "UV_CONCURRENT_DOWNLOADS", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT",
        # which distributions to choose
        "PIP_NO_BINARY", "PIP_ONLY_BINARY", "PIP_PREFER_BINARY", "PIP_UPLOADED_PRIOR_TO",
        "UV_EXCLUDE_NEWER", "UV_NO_BINARY", "UV_NO_BUILD",
    }
)  # fmt: skip

# An installer would treat packages found there as installed in the new environment.
OTHER_PACKAGE_VARIABLES: Final = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})

FORCED_FOR_INSTALLERS: Final = {
    "NO_COLOR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    # A build script could change what a shared cache has for others.
    "PIP_NO_CACHE_DIR": "1",
    "UV_NO_CACHE": "1",
    "PIP_NO_INPUT": "1",
    # Overrides a user setting that fails in a virtual environment.
    "PIP_USER": "0",
    # With hard links, a change to the cached file would change the installed one.
    "UV_LINK_MODE": "copy",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}


# uv does not read pip's variables, but a user who sets them means every installer. A name looked up
# on an index other than the company's own may be an attacker's package there.
UV_EQUIVALENTS: Final = {
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "PIP_EXTRA_INDEX_URL": ("UV_EXTRA_INDEX_URL", "UV_INDEX"),
    "PIP_TRUSTED_HOST": ("UV_INSECURE_HOST",),
    "PIP_NO_INDEX": ("UV_NO_INDEX",),
    "PIP_CERT": ("SSL_CERT_FILE",),
}


def make_installer_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of an installer from ``environ``, the environment of agentci."""
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


# Full names only: a prefix would also pass secrets (HF_HOME, HF_TOKEN).
PROGRAM_VARIABLES: Final = frozenset(
    {
        # search paths of programs, libraries and modules
        "PATH", "LD_LIBRARY_PATH", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV",
        # the user and the user's folders
        "HOME", "LOGNAME", "TEMP", "TMP", "TMPDIR", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        # language, time zone and whether output is for a terminal
        "CI", "LANG", "LANGUAGE", "NO_COLOR", "TZ",
        # certificates of a company proxy
        "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        # reproducibility
        "PYTHONHASHSEED", "SOURCE_DATE_EPOCH",
    }
)  # fmt: skip
LOCALE_PREFIX: Final = "LC_"
PROXY_VARIABLES: Final = frozenset({"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})

# With a fixed hash seed, a set that an evaluator prints has the same order on every run.
DEFAULT_VARIABLES: Final = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
# The protocol is UTF-8 on every machine, and no bytecode is written next to the evaluators.
FORCED_FOR_PROGRAMS: Final = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONUTF8": "1",
}


# Of the variables that every program may see, those that can change what it prints.
OUTPUT_VARIABLES: Final = frozenset(
    {
        *("LANG", "LANGUAGE", "LD_LIBRARY_PATH", "NODE_PATH", "PYTHONHASHSEED", "PYTHONPATH"),
        *("SOURCE_DATE_EPOCH", "TZ"),
    }
)


def select_output_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Select the variables of a program's environment that can change what it prints."""
    return {
        name: value
        for name, value in environment.items()
        if name in OUTPUT_VARIABLES or name.startswith(LOCALE_PREFIX)
    }


def make_child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of a program from ``environ``, without variables that carry secrets."""
    passed_on = {name: value for name, value in environ.items() if is_harmless(name, value)}
    return DEFAULT_VARIABLES | passed_on | FORCED_FOR_PROGRAMS


def is_harmless(name: str, value: str) -> bool:
    """Whether every program may see the variable."""
    if name.upper() in PROXY_VARIABLES:
        return "@" not in value  # user:password@host
    return name in PROGRAM_VARIABLES or name.startswith(LOCALE_PREFIX)
