"""What installers see of our environment: what programs see, and what leads to packages.

Programs get none of this. Whoever puts a password into the address of an index gives it to the
installer, and so to the build scripts of packages that have no wheel; tokens of the job stay here.
"""

from collections.abc import Mapping
from typing import Final

from agentci.execution.environment_variables import child_environment

# Names are spelled out: a prefix would let UV_PUBLISH_TOKEN through, or PIP_TARGET.
PASSED_ON: Final = frozenset(
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
OTHER_PACKAGES: Final = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})

FORCED: Final = {
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
SAID_FOR_PIP: Final = {
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "PIP_EXTRA_INDEX_URL": ("UV_EXTRA_INDEX_URL", "UV_INDEX"),
    "PIP_TRUSTED_HOST": ("UV_INSECURE_HOST",),
    "PIP_NO_INDEX": ("UV_NO_INDEX",),
    "PIP_CERT": ("SSL_CERT_FILE",),
}


def installer_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make an installer's environment out of ours."""
    passed_on = {name: value for name, value in environ.items() if name in PASSED_ON}
    for of_pip, of_uv in SAID_FOR_PIP.items():
        if of_pip in environ and not any(name in environ for name in of_uv):
            passed_on[of_uv[0]] = environ[of_pip]
    shared = child_environment(environ)
    return {k: v for k, v in shared.items() if k not in OTHER_PACKAGES} | passed_on | FORCED
