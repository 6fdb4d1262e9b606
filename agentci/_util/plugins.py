"""What other packages bring for our tables: entry points, one group a table.

An entry point that is broken is told as what it is: a package that does not fit, not a bug of ours.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from agentci.errors import InputError


def named(group: str, name: str) -> object | None:
    """What another package brings to ``group`` under ``name``; None where none does.

    Raises:
        InputError: it cannot be loaded, or two packages bring it.
    """
    points = sorted(set(entry_points(group=group, name=name)), key=_format_package)
    if not points:
        return None
    if len(points) > 1:
        packages = " and ".join(map(_format_package, points))
        raise InputError.from_message(
            f"{packages} both bring {name!r} for {group}", hint="uninstall one of them"
        )
    return _load_entry_point(points[0])


def load_all_plugins(group: str) -> Mapping[str, object]:
    """All that other packages bring to ``group``, by name.

    Raises:
        InputError: as above, for any of them.
    """
    found = {name: named(group, name) for name in list_plugin_names(group)}
    return {name: each for name, each in found.items() if each is not None}


def list_plugin_names(group: str) -> tuple[str, ...]:
    """The names that other packages bring to ``group``, whether or not what they name works."""
    return tuple(sorted(entry_points(group=group).names))


def make_plugin_error(group: str, name: str, *, wanted: str) -> InputError:
    """The error of an entry point that loads, but is not ``wanted``."""
    return InputError.from_message(
        f"{find_plugin_package(group, name)} brings {name!r} for {group}, which is not {wanted}",
        hint="update or uninstall it",
    )


def find_plugin_package(group: str, name: str) -> str:
    """The package that brings ``name`` to ``group``, for messages: ``the package NAME``."""
    return next(map(_format_package, entry_points(group=group, name=name)), "a package")


def _load_entry_point(point: EntryPoint) -> object:
    try:
        found: object = point.load()
    except Exception as error:  # noqa: BLE001 (whatever a foreign module raises, it is not ours)
        raise InputError.from_message(
            f"{_format_package(point)} brings {point.name!r} for {point.group}, which "
            "cannot be loaded:"
            f" {type(error).__name__}: {error}",
            hint="update or uninstall it",
        ) from None
    return found


def _format_package(point: EntryPoint) -> str:
    return "a package" if point.dist is None else f"the package {point.dist.name}"
