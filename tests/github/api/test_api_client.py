"""Requests follow GitHub's API description, and errors name a fix."""

from collections.abc import Callable

import pytest

from agentci.errors import GitHubError
from agentci.github.api_client import MAX_PAGES, GitHubApi, read_api_access
from tests._util.http.patience import Patience
from tests._util.http.servers import Answer, Raw, head, script, serve
from tests.github.api.description import NEEDS_DESCRIPTION, UndescribedError
from tests.github.api.hub import REPOSITORY, TOKEN, Hub, Reply, limited

pytestmark = NEEDS_DESCRIPTION
COMMENTS = "issues/7/comments"


@pytest.fixture
def api(hub: Hub, patience: Patience) -> GitHubApi:
    return GitHubApi(read_api_access(hub.environ), patience.client())


def refused(ask: Callable[[], object]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        ask()
    return caught.value


class TestRequests:
    def test_comment_is_created_updated_and_listed(self, api: GitHubApi, hub: Hub) -> None:
        made = api.post(COMMENTS, {"body": "one"})
        api.patch(
            f"issues/comments/{made['id']}", {"body": "tw\N{LATIN SMALL LETTER O WITH STROKE}"}
        )
        assert [each["body"] for each in api.pages(COMMENTS)] == [
            "tw\N{LATIN SMALL LETTER O WITH STROKE}"
        ]
        assert [each.operation for each in hub.asked] == [
            "issues/create-comment",
            "issues/update-comment",
            "issues/list-comments",
        ]

    def test_list_is_read_across_pages(self, api: GitHubApi, hub: Hub) -> None:
        for number in range(250):
            hub.add_comment(7, f"{number}")
        assert [each["body"] for each in api.pages(COMMENTS)] == [f"{n}" for n in range(250)]
        assert [each.query for each in hub.asked] == [
            {"per_page": 100, "page": page} for page in (1, 2, 3)
        ]

    def test_only_needed_pages_are_requested(self, api: GitHubApi, hub: Hub) -> None:
        for number in range(250):
            hub.add_comment(7, f"{number}")
        assert next(api.pages(COMMENTS))["body"] == "0"
        assert hub.count("issues/list-comments") == 1

    def test_endless_paging_stops_at_page_limit(self, api: GitHubApi, hub: Hub) -> None:
        more = {"Link": f'<{hub.url}/x>; rel="next"'}
        hub.operations["issues/list-comments"] = lambda _: Reply(body=[], headers=more)
        assert list(api.pages(COMMENTS)) == []
        assert hub.count("issues/list-comments") == MAX_PAGES

    def test_list_inside_document_is_read(self, api: GitHubApi, hub: Hub) -> None:
        hub.add_artifact(3, "agentci", b"zip")
        hub.add_artifact(4, "agentci", b"other")
        found = list(api.pages("actions/runs/3/artifacts", {"name": "agentci"}, items="artifacts"))
        assert [each["size_in_bytes"] for each in found] == [3]

    def test_leading_slash_addresses_api_root(self, api: GitHubApi, hub: Hub) -> None:
        hub.viewer = {"login": "ada"}
        viewer = api.get("/user")
        assert isinstance(viewer, dict)
        assert viewer["login"] == "ada"

    def test_download_sends_no_token_to_file_host(self, api: GitHubApi, hub: Hub) -> None:
        number = hub.add_artifact(3, "agentci", b"zip")["id"]
        path = f"actions/artifacts/{number}/zip"
        assert api.download(path, limit_bytes=10) == b"zip"
        assert "the limit is 2 bytes" in str(refused(lambda: api.download(path, limit_bytes=2)))


class TestErrors:
    def test_missing_permission_is_named_in_hint(self, api: GitHubApi, hub: Hub) -> None:
        hub.denied = {"issues/create-comment", "actions/list-workflow-run-artifacts"}
        error = refused(lambda: api.post(COMMENTS, {"body": "x"}))
        assert str(error) == (
            "GitHub answered 403 for POST issues/7/comments "
            "(Resource not accessible by integration)"
        )
        assert error.hint == "the job needs `permissions: pull-requests: write`"
        assert error.denied
        error = refused(lambda: list(api.pages("actions/runs/3/artifacts", items="artifacts")))
        assert error.hint == "the job needs `permissions: actions: read`"

    def test_token_without_user_is_denied(self, api: GitHubApi) -> None:
        error = refused(lambda: api.get("/user"))
        assert (error.status, error.hint) == (403, "check the permissions of the token")

    def test_invalid_token_is_reported_without_its_value(
        self, hub: Hub, patience: Patience
    ) -> None:
        environ = hub.environ | {"INPUT_GITHUB-TOKEN": "old"}
        error = refused(
            lambda: GitHubApi(read_api_access(environ), patience.client()).get(COMMENTS)
        )
        assert (error.status, error.denied) == (401, False)
        assert "github-token" in str(error.hint)
        assert "old" not in f"{error} {error.hint}"

    def test_not_found_hints_at_missing_permission(self, api: GitHubApi) -> None:
        error = refused(lambda: api.patch("issues/comments/1", {"body": "x"}))
        assert error.status == 404
        assert str(error.hint).endswith("needs `permissions: pull-requests: write`")

    def test_validation_error_is_reported(self, api: GitHubApi) -> None:
        error = refused(lambda: api.post(COMMENTS, {"body": "x" * 65_537}))
        assert str(error) == "GitHub answered 422 for POST issues/7/comments (Validation Failed)"

    @pytest.mark.parametrize("name", ["GITHUB_REPOSITORY", "INPUT_GITHUB-TOKEN"])
    def test_missing_setting_is_reported_before_any_request(
        self, name: str, hub: Hub, patience: Patience
    ) -> None:
        environ = {key: value for key, value in hub.environ.items() if key != name}
        error = refused(
            lambda: GitHubApi(read_api_access(environ), patience.client()).get(COMMENTS)
        )
        assert "set" in str(error.hint)
        assert hub.asked == []

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"<html>", "is not JSON"),
            (b"[" * 100_000, "is not JSON"),
            (b"[]", "is not a JSON object"),
        ],
    )
    def test_malformed_response_body_is_rejected(
        self, body: bytes, message: str, api: GitHubApi, hub: Hub
    ) -> None:
        hub.faults["issues/create-comment"] = [Answer(status=201, body=body)]
        assert message in str(refused(lambda: api.post(COMMENTS, {"body": "x"})))

    def test_page_that_is_not_a_list_is_rejected(self, api: GitHubApi, hub: Hub) -> None:
        hub.faults["issues/list-comments"] = [Answer(body=b"{}")]
        assert "is not a list" in str(refused(lambda: list(api.pages(COMMENTS))))

    def test_error_without_message_shows_status(self, api: GitHubApi, hub: Hub) -> None:
        hub.faults["issues/create-comment"] = [Answer(status=418, body=b"tea")]
        error = refused(lambda: api.post(COMMENTS, {"body": "x"}))
        assert str(error) == "GitHub answered 418 for POST issues/7/comments"

    def test_refused_connection_is_reported(self, patience: Patience) -> None:
        environ = {"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_REPOSITORY": REPOSITORY}
        client = GitHubApi(read_api_access(environ | {"GITHUB_TOKEN": TOKEN}), patience.client())
        assert " (5 attempts)" in str(refused(lambda: client.get(COMMENTS)))


class TestRetries:
    def test_rate_limit_wait_is_respected(
        self, api: GitHubApi, hub: Hub, patience: Patience
    ) -> None:
        hub.faults["issues/create-comment"] = [limited(Retry_After="7"), limited()]
        api.post(COMMENTS, {"body": "x"})
        assert patience.slept == pytest.approx(67)
        assert [len(each) for each in hub.comments.values()] == [1]

    @pytest.mark.parametrize("status", [500, 502, 503])
    def test_idempotent_request_is_retried_after_server_error(
        self, status: int, api: GitHubApi, hub: Hub
    ) -> None:
        number = hub.add_comment(7, "old")["id"]
        hub.faults["issues/update-comment"] = [Answer(status=status)]
        assert api.patch(f"issues/comments/{number}", {"body": "new"})["body"] == "new"

    def test_post_is_not_retried_after_server_error(self, api: GitHubApi, hub: Hub) -> None:
        hub.faults["issues/create-comment"] = [Answer(status=502)]
        error = refused(lambda: api.post(COMMENTS, {"body": "x"}))
        assert "the server may have processed the request" in str(error)
        assert hub.count("issues/create-comment") == 1

    def test_truncated_post_response_is_not_retried(self, patience: Patience) -> None:
        half = Raw(pieces=[head(201, "Content-Length: 9"), b"x"])
        with serve(script(half)) as server:
            environ = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": REPOSITORY}
            client = GitHubApi(
                read_api_access(environ | {"GITHUB_TOKEN": TOKEN}), patience.client()
            )
            assert "the server may have processed" in str(
                refused(lambda: client.post(COMMENTS, {"body": "x"}))
            )
        assert len(server.asked) == 1


class TestToken:
    def test_input_token_precedes_environment_token(self) -> None:
        both = {"INPUT_GITHUB-TOKEN": " a\n", "GITHUB_TOKEN": "b"}
        assert read_api_access(both).token == "a"
        assert read_api_access({"GITHUB_TOKEN": "b"}).token == "b"

    def test_token_is_not_in_repr(self) -> None:
        assert "hush" not in repr(read_api_access({"GITHUB_TOKEN": "hush"}))


class TestApiDescription:
    """The check that the tests above rely on detects invalid requests and responses."""

    @pytest.mark.parametrize(
        ("method", "target", "body", "message"),
        [
            ("POST", "/issues/7/commments", b"{}", "there is no POST"),
            ("DELETE", "/issues/7/comments", b"", "there is no DELETE"),
            ("GET", "/issues/7/comments?perpage=1", b"", "no parameter perpage"),
            ("GET", "/issues/7/comments?page=1&page=2", b"", "stands twice"),
            ("GET", "/issues/seven/comments", b"", "issue_number"),
            ("GET", "/issues/7/comments?page=two", b"", "page"),
            ("POST", "/issues/7/comments", b"", "None is not of type"),
            ("POST", "/issues/7/comments", b"{}", "'body' is a required property"),
            ("POST", "/issues/7/comments", b'{"body": 1}', "1 is not of type 'string'"),
            ("POST", "/issues/7/comments", b'{"body": "x", "text": "y"}', "no member .text"),
            ("GET", "/issues/7/comments", b"{}", "takes no body"),
        ],
    )
    def test_undescribed_request_is_rejected(
        self, method: str, target: str, body: bytes, message: str, hub: Hub
    ) -> None:
        with pytest.raises(UndescribedError, match=message):
            hub.description.question(method, f"/repos/{REPOSITORY}{target}", {}, body)

    @pytest.mark.parametrize(
        ("status", "body"), [(200, [{"id": 1}]), (202, []), (404, "not an object"), (400, [])]
    )
    def test_undescribed_response_is_rejected(self, status: int, body: object, hub: Hub) -> None:
        with pytest.raises(UndescribedError):
            hub.description.check_answer("issues/list-comments", status, body)
