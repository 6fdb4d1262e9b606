"""Runtimes from plugin packages, working and broken."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.execution.runtimes import (
    RUNTIME_GROUP,
    find_unsupported_reason,
    make_command,
    make_image_command,
)
from tests.helpers.packages import install

RUBY = """\
EXTENSIONS = (".rb", ".py")

def command_for(path, *, search_path):
    return ["ruby", str(path), search_path]
"""
INSTANCE = """\
class Ruby:
    EXTENSIONS = (".rb",)

    def command_for(self, path, *, search_path):
        return ("ruby", str(path))

RUBY = Ruby()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the module search path."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that no built-in runtime supports."""
    path = tmp_path / "check.rb"
    path.write_text("puts 1")
    return path


def bring(site: Path, module: str, points: Mapping[str, str] | None = None) -> str:
    """Install a package with runtimes; by default, its module is the runtime ``ruby``."""
    return install(site, RUNTIME_GROUP, points or {"ruby": ""}, module=module)


class TestRuntimePlugin:
    def test_plugin_runs_files_with_its_extensions(self, site: Path, program: Path) -> None:
        bring(site, RUBY)
        assert find_unsupported_reason(program) is None
        assert make_command(program, search_path="/bin") == ("ruby", str(program), "/bin")

    def test_class_instance_is_accepted_as_plugin(self, site: Path, program: Path) -> None:
        bring(site, INSTANCE, {"ruby": "RUBY"})
        assert make_command(program, search_path="/bin") == ("ruby", str(program))

    def test_plugin_extension_is_case_insensitive(self, site: Path, tmp_path: Path) -> None:
        bring(site, RUBY)
        assert find_unsupported_reason(tmp_path / "CHECK.RB") is None

    def test_plugin_takes_precedence_over_shebang(self, site: Path, program: Path) -> None:
        program.chmod(0o755)
        bring(site, RUBY)
        assert make_command(program, search_path="")[0] == "ruby"

    def test_plugin_cannot_take_builtin_extension(self, site: Path, tmp_path: Path) -> None:
        bring(site, RUBY)
        path = tmp_path / "check.py"
        path.touch()
        assert make_command(path, search_path="")[0] != "ruby"

    def test_plugin_cannot_replace_builtin_runtime(self, site: Path, program: Path) -> None:
        bring(site, RUBY, {"node": ""})
        assert find_unsupported_reason(program) is not None

    def test_unsupported_file_message_lists_plugin_extensions(
        self, site: Path, tmp_path: Path
    ) -> None:
        bring(site, RUBY)
        path = tmp_path / "check.pl"
        path.touch()
        assert find_unsupported_reason(path) == (
            "`check.pl` is not executable and has none of the supported extensions"
            " (.py, .js, .mjs, .cjs, .cts, .mts, .ts, .rb);"
            " run `chmod +x` on it and begin it with a `#!` line"
        )

    def test_image_command_of_plugin_is_used(self, site: Path, program: Path) -> None:
        bring(site, f"{RUBY}\nIMAGE_COMMAND = ('ruby', '-W0')")
        assert make_image_command(program) == ("ruby", "-W0", str(program))

    def test_plugin_without_image_command_raises_error(self, site: Path, program: Path) -> None:
        package = bring(site, RUBY)
        with pytest.raises(EvaluatorError) as error:
            make_image_command(program)
        assert str(error.value) == (
            f"the runtime `ruby` of the package {package} cannot run .rb files in an image:"
            " it has no `IMAGE_COMMAND`; use `executor: local`"
        )

    def test_evaluator_error_of_plugin_is_passed_through(self, site: Path, program: Path) -> None:
        module = RUBY.replace(
            "    return", "    raise EvaluatorError('Ruby not found on PATH')\n    return"
        )
        bring(site, f"from agentci.errors import EvaluatorError\n{module}")
        with pytest.raises(EvaluatorError, match=r"^Ruby not found on PATH$"):
            make_command(program, search_path="")


BROKEN = [
    pytest.param("import gone", "which cannot be loaded: ModuleNotFoundError", id="import fails"),
    pytest.param("", "which is not a runtime", id="empty module"),
    pytest.param("EXTENSIONS = ('.rb',)", "which is not a runtime", id="without command_for"),
    pytest.param(
        RUBY.replace('".rb"', '"rb"'), "which is not a runtime", id="extension without dot"
    ),
    pytest.param(
        RUBY.replace('".rb"', '".RB"'), "which is not a runtime", id="extension in upper case"
    ),
    pytest.param(
        RUBY.replace('".rb"', '".r.b"'), "which is not a runtime", id="extension with two dots"
    ),
    pytest.param(RUBY.replace('".rb"', '""'), "which is not a runtime", id="empty extension"),
    pytest.param(RUBY.replace('".rb"', "7"), "which is not a runtime", id="extension is a number"),
    pytest.param(
        f"{RUBY}\nIMAGE_COMMAND = 'ruby'", "which is not a runtime", id="image command is text"
    ),
    pytest.param(
        f"{RUBY}\nIMAGE_COMMAND = ('',)", "which is not a runtime", id="empty word in image command"
    ),
    pytest.param(f"{RUBY}\nEXTENSIONS = '.rb'", "which is not a runtime", id="extensions are text"),
]


NO_COMMAND = "`command_for` returned no command for `check.rb`"
NO_STRINGS = "`command_for` returned a command for `check.rb` that is not a list of strings"


class TestBrokenRuntimePlugin:
    @pytest.mark.parametrize(("module", "complaint"), BROKEN)
    def test_broken_plugin_error_names_package(
        self, module: str, complaint: str, site: Path, program: Path
    ) -> None:
        package = bring(site, module)
        with pytest.raises(InputError) as refusal:
            find_unsupported_reason(program)
        assert f"the package {package} provides 'ruby' for agentci.runtimes, {complaint}" in str(
            refusal.value
        )

    def test_uninstantiated_class_is_rejected(self, site: Path, program: Path) -> None:
        bring(site, INSTANCE, {"ruby": "Ruby"})
        with pytest.raises(InputError, match="which is not a runtime"):
            find_unsupported_reason(program)

    def test_broken_plugin_raises_evaluator_error_for_command(
        self, site: Path, program: Path
    ) -> None:
        bring(site, "import gone")
        with pytest.raises(EvaluatorError, match="which cannot be loaded"):
            make_command(program, search_path="")

    @pytest.mark.parametrize("name", ["check.py", "check.ts", "check"])
    def test_plugin_is_not_loaded_for_supported_files(
        self, name: str, site: Path, tmp_path: Path
    ) -> None:
        bring(site, "raise SystemExit('looked at')")
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert find_unsupported_reason(path) is None

    def test_extension_claimed_by_two_plugins_is_rejected(self, site: Path, program: Path) -> None:
        one, other = bring(site, RUBY, {"a": ""}), bring(site, RUBY, {"b": ""})
        with pytest.raises(InputError) as refusal:
            find_unsupported_reason(program)
        assert str(refusal.value) == (
            f"the runtime `a` of the package {one} and the runtime `b` of the package {other}"
            " both run .rb files (uninstall one of them)"
        )

    @pytest.mark.parametrize(
        ("result", "complaint"),
        [
            ("None", NO_COMMAND),
            ("()", NO_COMMAND),
            ("'ruby check.rb'", NO_COMMAND),
            ("('ruby', path)", NO_STRINGS),
            ("('ruby', 'a\\0b')", NO_STRINGS),
            ("1 / 0", "ZeroDivisionError: division by zero"),
        ],
    )
    def test_invalid_plugin_command_raises_evaluator_error(
        self, result: str, complaint: str, site: Path, program: Path
    ) -> None:
        package = bring(site, f"{RUBY.partition('return')[0]}return {result}\n")
        with pytest.raises(EvaluatorError) as error:
            make_command(program, search_path="")
        assert str(error.value) == (
            f"the runtime `ruby` of the package {package} failed: {complaint};"
            " report this to the authors of that package"
        )
