"""What is installed in an environment, and when evaluators share one."""

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.requirements import (
    Requirements,
    compute_environment_key,
    decode_requirements,
)

HASH = f"--hash=sha256:{'a' * 64}"
OTHER_HASH = f"--hash=sha256:{'b' * 64}"


class TestDecodedFile:
    def test_byte_order_mark_is_ignored(self) -> None:
        assert decode_requirements(b"\xef\xbb\xbfnltk\n") == decode_requirements(b"nltk\n")

    def test_file_not_in_utf8_is_rejected(self) -> None:
        with pytest.raises(EvaluatorError, match="not UTF-8"):
            decode_requirements("nltk".encode("utf-16"))

    def test_locked_lines_are_kept(self) -> None:
        locked = (f"nltk==3.9 {HASH}",)
        assert decode_requirements(b"nltk", locked=locked).locked == locked


class TestInstallLines:
    def test_sdk_is_added_to_requirements(self) -> None:
        requirements = Requirements(text="rouge\nnltk>=3\n--index-url https://a.example")
        assert requirements.install_lines() == (
            "--index-url https://a.example",
            "agentevals-evaluator-sdk>=0.1.1",
            "nltk>=3",
            "rouge",
        )

    @pytest.mark.parametrize(
        "named", ["agentevals-evaluator-sdk==0.1.0", "AgentEvals_Evaluator.SDK"]
    )
    def test_named_sdk_version_is_used(self, named: str) -> None:
        assert Requirements(text=named).install_lines() == (named,)

    def test_locked_lines_replace_packages_and_keep_indexes(self) -> None:
        requirements = Requirements(
            text="nltk\n--extra-index-url https://a.example",
            locked=(f"nltk==3.9 {HASH}", f"click==8.1 ; sys_platform == 'linux' {HASH} {HASH}"),
        )
        assert requirements.install_lines() == (
            "--extra-index-url https://a.example",
            f"click==8.1 ; sys_platform == 'linux' {HASH} {HASH}",
            f"nltk==3.9 {HASH}",
        )

    def test_sdk_is_not_added_to_hashed_requirements(self) -> None:
        assert Requirements(text=f"nltk==3.9 {HASH}").install_lines() == (
            "--require-hashes",
            f"nltk==3.9 {HASH}",
        )


class TestLock:
    @pytest.mark.parametrize(
        "line",
        [
            "nltk==3.9",
            f"nltk {HASH}",
            f"nltk==3.* {HASH}",
            f"nltk==3,==3 {HASH}",
            f"nltk>=3 {HASH}",
            f"nltk @ https://a.example/nltk.whl {HASH}",
            f"-r x {HASH}",
            f"./x {HASH}",
            f"nltk==3.9 ; python_version > '\n-r x\n' {HASH}",
            f"nltk==3.9 {HASH}\n-r x",
        ],
    )
    def test_lock_line_without_version_and_hash_is_rejected(self, line: str) -> None:
        with pytest.raises(EvaluatorError, match="needs an exact version and a"):
            Requirements(text="nltk", locked=(line,)).install_lines()

    def test_package_with_address_cannot_be_locked(self) -> None:
        with pytest.raises(EvaluatorError, match="cannot be locked"):
            Requirements(
                text="demo @ https://example.com/demo.whl", locked=(f"demo==1 {HASH}",)
            ).install_lines()


class TestEnvironmentKey:
    @pytest.mark.parametrize(
        "text", ["rouge\nnltk>=3\n", "# stems\nnltk>=3 # yes\n\nrouge", "nltk>=3\nrouge\nrouge"]
    )
    def test_key_is_same_for_same_packages(self, text: str) -> None:
        assert compute_environment_key(Requirements(text=text)) == compute_environment_key(
            Requirements(text="nltk>=3\nrouge")
        )

    @pytest.mark.parametrize(
        "other",
        [
            Requirements(text="nltk>=3"),
            Requirements(text="nltk\n--extra-index-url https://a.example"),
            Requirements(text="nltk", locked=(f"nltk==3.9 {HASH}",)),
            Requirements(text="nltk", locked=(f"nltk==3.9 {OTHER_HASH}",)),
            Requirements(text=f"nltk==3.9 {HASH}"),
        ],
        ids=str,
    )
    def test_key_differs_for_other_packages(self, other: Requirements) -> None:
        others = {
            compute_environment_key(Requirements(text="nltk")),
            compute_environment_key(
                Requirements(text="nltk", locked=(f"nltk==3.9 {HASH} {OTHER_HASH}",))
            ),
        }
        assert compute_environment_key(other) not in others

    def test_rejected_requirements_have_no_key(self) -> None:
        with pytest.raises(EvaluatorError, match="includes another file"):
            compute_environment_key(Requirements(text="-r other.txt"))
