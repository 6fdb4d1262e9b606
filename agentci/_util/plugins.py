"""Loads plugins: entry points of other packages, one group per kind of plugin.

A broken entry point is reported as a problem of its package, not as a bug in agentci.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from agentci.errors import InputError


def load_plugin(group: str, name: str) -> object | None:
    """Load the plugin ``name`` of ``group``; None if no package has it.

    Raises:
        InputError: it cannot be loaded, or two packages have it.
    """
    points = sorted(set(entry_points(group=group, name=name)), key=_format_package)
    if not points:
        return None
    if len(points) > 1:
        packages = " and ".join(map(_format_package, points))
        raise InputError.from_message(
            f"{packages} both provide {name!r} for {group}", hint="uninstall one of them"
        )
    point = points[0]
    try:
        found: object = point.load()
    except Exception as error:  # noqa: BLE001 (a foreign module may raise anything)
        raise InputError.from_message(
            f"{_format_package(point)} provides {point.name!r} for {point.group}, which "
            "cannot be loaded:"
            f" {type(error).__name__}: {error}",
            hint="update or uninstall it",
        ) from None
    return found


def load_all_plugins(group: str) -> Mapping[str, object]:
    """Load all plugins of ``group``, by name.

    Raises:
        InputError: one of them cannot be loaded, or two packages have it.
    """
    found = {name: load_plugin(group, name) for name in list_plugin_names(group)}
    return {name: each for name, each in found.items() if each is not None}


def list_plugin_names(group: str) -> tuple[str, ...]:
    """List the names of the plugins of ``group`` without loading them."""
    return tuple(sorted(entry_points(group=group).names))


def make_plugin_error(group: str, name: str, *, expected: str) -> InputError:
    """Create the error of an entry point that loads, but is not ``expected``."""
    package = find_plugin_package(group, name)
    return InputError.from_message(
        f"{package} provides {name!r} for {group}, which is not {expected}",
        hint="update or uninstall it",
    )


def find_plugin_package(group: str, name: str) -> str:
    """Return the package with the plugin ``name`` of ``group``, as ``the package NAME``."""
    return next(map(_format_package, entry_points(group=group, name=name)), "a package")


def _format_package(point: EntryPoint) -> str:
    return "a package" if point.dist is None else f"the package {point.dist.name}"
