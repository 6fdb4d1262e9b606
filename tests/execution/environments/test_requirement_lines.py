"""Lines of requirements files: which are accepted and which are rejected."""

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.requirements import (
    RequiredPackage,
    RequirementLines,
    parse_requirements,
)

SHA256 = "a" * 64


class TestAcceptedLines:
    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ("nltk", "nltk"),
            ("Rouge_Score", "rouge-score"),
            ("a.b==1.0", "a-b"),
            ("requests[socks,security]>=2.8.1,<3", "requests"),
            ("numpy ~= 1.26 ; python_version < '3.13'", "numpy"),
            ("scipy (>=1.10)", "scipy"),
            ("torch==2.1.0+cpu", "torch"),
            ("old>=1!2.0", "old"),
            ("a[]", "a"),
            ("a ; platform_machine == 'x86_64' and (extra == 'b')", "a"),
        ],
    )
    def test_index_package_is_accepted(self, line: str, name: str) -> None:
        assert parse_requirements(line) == RequirementLines(
            packages=(RequiredPackage(name=name, line=line),)
        )

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ("demo @ https://example.com/demo-1.0-py3-none-any.whl", "demo"),
            ("https://example.com/demo-1.0-py3-none-any.whl#sha256=abc", ""),
            ("https://example.com/demo.whl ; python_version < '3.13'", ""),
            ("demo @ git+https://example.com/demo.git@v1 ; sys_platform == 'linux'", "demo"),
        ],
    )
    def test_package_with_https_address_is_accepted(self, line: str, name: str) -> None:
        assert parse_requirements(line) == RequirementLines(
            packages=(RequiredPackage(name=name, line=line, direct=True),)
        )

    @pytest.mark.parametrize(
        ("line", "options"),
        [
            (
                "--extra-index-url https://a.example/cpu",
                ["--extra-index-url https://a.example/cpu"],
            ),
            ("--index-url=https://a.example", ["--index-url https://a.example"]),
            ("-i https://a.example", ["--index-url https://a.example"]),
            ("-f https://a.example/x.html", ["--find-links https://a.example/x.html"]),
            ("--no-index --prefer-binary", ["--no-index", "--prefer-binary"]),
            ("--only-binary :all: --no-binary=a,b", ["--only-binary :all:", "--no-binary a,b"]),
        ],
    )
    def test_index_options_are_normalized(self, line: str, options: list[str]) -> None:
        assert parse_requirements(line) == RequirementLines(options=tuple(options))

    def test_hashes_on_continued_lines_are_read(self) -> None:
        text = f"demo==1.0 \\\n    --hash=sha256:{SHA256} \\\n    --hash=sha256:{SHA256}\nother==2"
        hashed, other = parse_requirements(text).packages
        assert hashed.line == f"demo==1.0 --hash=sha256:{SHA256} --hash=sha256:{SHA256}"
        assert hashed.hashed
        assert not other.hashed
        assert parse_requirements(text).hashed

    def test_comments_and_blank_lines_are_ignored(self) -> None:
        text = "# all of it\n\n  # with a path \\\nnltk  # for stems\n\t\nrouge\\\n\n"
        assert [each.line for each in parse_requirements(text).packages] == ["nltk", "rouge"]

    def test_continuation_at_end_of_file_is_ignored(self) -> None:
        assert [each.line for each in parse_requirements("nltk\\").packages] == ["nltk"]


class TestRejectedLines:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("-r other.txt", "includes another file"),
            ("--requirement=/etc/passwd", "includes another file"),
            ("-c constraints.txt", "includes another file"),
            ("-e .", "installs a local folder"),
            ("--editable ./x", "installs a local folder"),
            ("--trusted-host a.example", "disables the TLS check"),
            ("--pre", "allows all pre-releases"),
            ("--req other.txt", "unknown option"),
            ("-rother.txt", "unknown option"),
            ("--index-url http://a.example", "needs an https:// URL"),
            ("--index-url", "needs an https:// URL"),
            ("--find-links ./wheels", "needs an https:// URL"),
            ("--find-links=file:///wheels", "needs an https:// URL"),
            ("--no-index -r other.txt", "includes another file"),
            ("--only-binary", "needs package names"),
            ("nltk --hash=md5:abc", "other than --hash"),
            ("nltk --global-option=x", "other than --hash"),
            ("nltk -r other.txt", "is not a valid requirement"),
            ("nltk==${VERSION}", "uses an environment variable"),
            ("--index-url https://${TOKEN}@a.example", "uses an environment variable"),
            (".", "is not a valid requirement"),
            ("./folder", "is not a valid requirement"),
            ("../folder", "is not a valid requirement"),
            ("/srv/wheels/demo-1.0-py3-none-any.whl", "is not a valid requirement"),
            ("demo-1.0-py3-none-any.whl", "is not a valid requirement"),
            ("demo-1.0.tar.gz", "is not a valid requirement"),
            ("file:///srv/demo", "is not a valid requirement"),
            ("demo @ file:///srv/demo", "is not a valid requirement"),
            ("demo @ ./demo", "is not a valid requirement"),
            ("git+ssh://git@example.com/demo", "is not a valid requirement"),
            ("demo @ git+file:///srv/demo", "is not a valid requirement"),
            ("http://example.com/demo-1.0-py3-none-any.whl", "is not a valid requirement"),
            ("nlt\N{CYRILLIC SMALL LETTER KA}", "is not a valid requirement"),
            ("folder/", "is not a valid requirement"),
            ("nltk==next", "is not a valid requirement"),
            ("nltk===../x", "is not a valid requirement"),
            ("demo==1.0.zip", "is not a valid requirement"),
            ("demo===1.0.zip", "is not a valid requirement"),
            ("nltk ; python_version", "is not a valid requirement"),
            ("https://example.com/demo.whl ; python", "is not a valid requirement"),
        ],
    )
    def test_unsafe_line_is_rejected_with_line_number(self, line: str, reason: str) -> None:
        with pytest.raises(EvaluatorError, match=reason) as refused:
            parse_requirements(f"nltk\n\n{line}\n")
        assert "requirements.txt that cannot be used: line 3: " in str(refused.value)

    @pytest.mark.parametrize("split", ["\x0b", "\x0c", "\x1c", "\x85", "\N{LINE SEPARATOR}", "\r"])
    def test_unusual_line_break_cannot_hide_option(self, split: str) -> None:
        with pytest.raises(EvaluatorError, match="includes another file"):
            parse_requirements(f"nltk  # harmless{split}-r /etc/passwd")

    def test_option_on_continued_line_is_rejected(self) -> None:
        with pytest.raises(EvaluatorError, match="includes another file"):
            parse_requirements("\\\n-r /etc/passwd")

    def test_very_long_line_is_rejected_with_short_message(self) -> None:
        for line in (f"nltk{' ' * 500_000}!", f"a{'.' * 500_000}!", f"a {'[' * 500_000}"):
            with pytest.raises(EvaluatorError) as refused:
                parse_requirements(line)
            assert len(str(refused.value)) < 500
