"""Plugins from entry points of other packages, including broken ones."""

import sys
from functools import partial
from pathlib import Path

import pytest

from agentci._util.plugins import load_all_plugins, load_plugin, make_plugin_error
from agentci.errors import InputError

GROUP = "agentci.test_things"
MODULE = "THING = 7\n"


def install(folder: Path, package: str, points: str, *, module: str = MODULE) -> None:
    """Installs a package into a folder on the module search path."""
    (folder / f"{package.replace('-', '_')}.py").write_text(module)
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class TestEntryPoints:
    def test_plugins_are_found_by_name(self, site: Path) -> None:
        install(site, "ext-one", "thing = ext_one:THING\nother = ext_one:THING")
        assert load_plugin(GROUP, "thing") == 7
        assert load_all_plugins(GROUP) == {"other": 7, "thing": 7}

    def test_unknown_name_gives_no_plugin(self, site: Path) -> None:
        install(site, "ext-two", "thing = ext_two:THING")
        assert load_plugin(GROUP, "thimg") is None
        assert load_all_plugins("agentci.nothing") == {}

    @pytest.mark.parametrize(
        ("module", "reason"),
        [
            ("raise OSError('no disk')", "OSError: no disk"),
            ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
            ("THING = (", "SyntaxError: "),
            ("", "AttributeError: module 'ext_three' has no attribute 'THING'"),
        ],
    )
    def test_plugin_that_fails_to_load_names_its_package(
        self, site: Path, module: str, reason: str
    ) -> None:
        sys.modules.pop("ext_three", None)
        install(site, "ext-three", "thing = ext_three:THING", module=module)
        for load in (partial(load_plugin, GROUP, "thing"), partial(load_all_plugins, GROUP)):
            with pytest.raises(InputError) as error:
                load()
            (problem,) = error.value.problems
            assert problem.message.startswith(
                "the package ext-three provides 'thing' for agentci.test_things,"
                f" which cannot be loaded: {reason}"
            )
            assert problem.hint == "update or uninstall it"

    def test_name_from_two_packages_is_rejected(self, site: Path) -> None:
        install(site, "ext-four", "thing = ext_four:THING")
        install(site, "ext-five", "thing = ext_five:THING")
        with pytest.raises(InputError) as error:
            load_plugin(GROUP, "thing")
        assert error.value.problems[0].message == (
            "the package ext-five and the package ext-four both provide 'thing'"
            " for agentci.test_things"
        )

    def test_plugin_of_wrong_type_names_its_package(self, site: Path) -> None:
        install(site, "ext-six", "thing = ext_six:THING")
        (problem,) = make_plugin_error(GROUP, "thing", expected="a source").problems
        assert problem.message == (
            "the package ext-six provides 'thing' for agentci.test_things, which is not a source"
        )

    def test_error_without_package_is_still_reported(self) -> None:
        (problem,) = make_plugin_error(GROUP, "thing", expected="a source").problems
        assert problem.message.startswith("a package provides 'thing'")
