"""Rules for refs, repositories, revisions, file names and digests."""

import pytest

from agentci.errors import PermanentFetchError
from agentci.remote.sources.validation import (
    check_ref,
    check_repository,
    check_revision,
    find_file_name_problem,
    find_ref_problem,
    normalize_sha256,
)

HOSTILE_REFS = {
    "": "has 0 characters; 1 to 512 are allowed",
    "x" * 513: "has 513 characters; 1 to 512 are allowed",
    "a/" * 16 + "b.py": "has 17 parts; the limit is 16",
    "/abs/evil.py": "is absolute",
    "../x.py": "has the part '..', which is not allowed",
    "a/../../attacker/repo/main/x.py": "has the part '..', which is not allowed",
    "./x.py": "has the part '.', which is not allowed",
    "a//x.py": "has an empty part",
    "a/": "has an empty part",
    "%2e%2e/x.py": "has the part '%2e%2e', which is not allowed",
    "a%2fx.py": "has the part 'a%2fx.py', which is not allowed",
    "a\\..\\x.py": r"has the part 'a\\..\\x.py', which is not allowed",
    ".hidden/x.py": "has the part '.hidden', which is not allowed",
    "-rf/x.py": "has the part '-rf', which is not allowed",
    "a b.py": "has the part 'a b.py', which is not allowed",
    "x..py": "has the part 'x..py', which is not allowed",
    "x.py\n": r"has the part 'x.py\n', which is not allowed",
    "\N{FULLWIDTH FULL STOP}/x.py": "has the part '．', which is not allowed",  # noqa: RUF001
    "x.py?ref=evil": "has the part 'x.py?ref=evil', which is not allowed",
    "x.py#y": "has the part 'x.py#y', which is not allowed",
}


class TestRefs:
    @pytest.mark.parametrize(
        "ref",
        [
            "x.py",
            "evaluators/quality/quality.py",
            "a_b/c-d/e.f.py",
            "_x/1.js",
            "x" * 512,
            "LICENSE",
        ],
    )
    def test_plain_path_is_valid_ref(self, ref: str) -> None:
        check_ref(ref)

    @pytest.mark.parametrize(("ref", "reason"), HOSTILE_REFS.items(), ids=range(len(HOSTILE_REFS)))
    def test_invalid_ref_is_rejected_with_reason(self, ref: str, reason: str) -> None:
        assert find_ref_problem(ref) == reason

    def test_ref_error_has_hint_with_example(self) -> None:
        with pytest.raises(
            PermanentFetchError, match=r"the ref '\.\./x\.py' has the part '\.\.'"
        ) as error:
            check_ref("../x.py")
        assert error.value.hint == (
            "write the path of the program in the repository, like evaluators/NAME/NAME.py"
        )


class TestRepositoryNames:
    @pytest.mark.parametrize("repository", ["org/name", "o-r-g/na.me_1", "me_corp/x", "1/..."])
    def test_owner_and_name_is_valid_repository(self, repository: str) -> None:
        check_repository(repository)

    @pytest.mark.parametrize(
        "repository",
        [
            "name",
            "/name",
            "org/",
            "a/b/c",
            "org/..",
            "org/.",
            "-a/b",
            "a b/c",
            "a/b?x",
            "a/b\n",
            "ä/b",
        ],
    )
    def test_invalid_repository_is_rejected(self, repository: str) -> None:
        with pytest.raises(PermanentFetchError, match="is not a GitHub repository") as error:
            check_repository(repository)
        assert error.value.hint == "write `owner/name`"

    @pytest.mark.parametrize(
        "address",
        [
            "https://github.com/org/na.me",
            "https://github.com/org/na.me.git",
            "git@github.com:org/na.me",
        ],
    )
    def test_repository_url_gets_hint_with_owner_and_name(self, address: str) -> None:
        with pytest.raises(PermanentFetchError) as error:
            check_repository(address)
        assert error.value.hint == "write 'org/na.me'"


class TestRevisions:
    @pytest.mark.parametrize(
        "revision", ["main", "feature/x", "v1.0", "refs/heads/x", "8c1f2a0", "100%", "ä", "a@b"]
    )
    def test_valid_git_revision_is_accepted(self, revision: str) -> None:
        check_revision(revision)

    @pytest.mark.parametrize(
        "revision",
        [
            *(
                "",
                "-x",
                "a..b",
                "a b",
                "a\tb",
                "a\nb",
                "a:b",
                "a~1",
                "a^",
                "a?",
                "a*",
                "a[",
                "a\\b",
            ),
            *("/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "@", "a@{1}", "a\x00"),
            *("a\x7f", "a\N{NO-BREAK SPACE}b", "a\udcff", "x" * 251),
        ],
    )
    def test_invalid_git_revision_is_rejected(self, revision: str) -> None:
        with pytest.raises(PermanentFetchError, match="is not the name of a branch, tag or commit"):
            check_revision(revision)


class TestFileNames:
    @pytest.mark.parametrize(
        "path", ["a b.txt", "日本/ü.py", ".hidden", "a/-x", "a..b", "C/x", "…"]
    )
    def test_unusual_file_name_is_accepted(self, path: str) -> None:
        assert find_file_name_problem(path) is None

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("/etc/passwd", "is absolute"),
            ("C:/x", "is absolute"),
            ("c:x", "is absolute"),
            ("", "must have 1 to 512 characters"),
            ("x" * 513, "must have 1 to 512 characters"),
            ("a\\b", "has a character that is not allowed"),
            ("a\0b", "has a character that is not allowed"),
            ("a\nb", "has a character that is not allowed"),
            ("a\udcff", "has a character that is not allowed"),
            ("..", "leaves its folder"),
            ("a/../../b", "leaves its folder"),
            ("a//b", "has an empty part"),
            ("a/./b", "has an empty part"),
            ("a/", "has an empty part"),
            ("ä" * 128, "has a part of more than 255 bytes"),
        ],
    )
    def test_unsafe_file_name_is_rejected_with_reason(self, path: str, reason: str) -> None:
        assert find_file_name_problem(path) == reason


class TestSha256:
    def test_sha256_is_normalized(self) -> None:
        assert normalize_sha256(f" sha256:{'AB' * 32} ") == "ab" * 32

    @pytest.mark.parametrize("text", ["", "ab", "g" * 64, "ab" * 33, "sha1:" + "ab" * 20])
    def test_invalid_sha256_is_rejected(self, text: str) -> None:
        with pytest.raises(PermanentFetchError, match="is not a sha256"):
            normalize_sha256(text)
