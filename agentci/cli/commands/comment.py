"""``agentci comment``: tell a pull request what another run came to, whose word nobody takes.

For the workflow that follows one of a pull request from a fork, which may write nothing itself.
Where to comment is GitHub's to say, by the event; of the report come only words, and it is as
foreign as any recording: read strictly, in bounds, and made into Markdown anew.
"""

from pathlib import Path
from typing import Final

from agentci._util.workspace import Workspace, is_folder
from agentci.cli.publish import publish_input_problems, publish_to_pull_request
from agentci.cli.session import Session
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.github.baseline.read import read_baseline_report
from agentci.reports.merge.report_files import REPORT_NAME

# A report of ten thousand checks takes a fifth of it.
MAX_COMMENT_REPORT_BYTES: Final = 64 * 1024**2


def post_report_comment(named: str, settings: Settings, session: Session) -> int:
    """Answer on GitHub with the report ``named``, and return 0 whatever its gate said.

    Args:
        named: ``results.json``, or the folder that has it.
    """
    try:
        _check_report_path(named, settings, session.services.workspace)
        report = read_baseline_report(
            named, session.services.workspace, limit_bytes=MAX_COMMENT_REPORT_BYTES
        )
    except InputError as error:
        return publish_input_problems(error.problems, session)
    publish_to_pull_request(report, settings, session)
    return 0


def _check_report_path(named: str, settings: Settings, workspace: Workspace) -> None:
    """See whether there is something to do, and that no link leads elsewhere.

    Raises:
        InputError: there is not, or one does.
    """
    if settings.commenting == "never" and not settings.check_run:
        message = "nothing is to be told of the report"
        raise InputError.from_message(message, hint="say `comment: always`, or name a check-run")
    path: Path = workspace.cwd / named
    path = path / REPORT_NAME if is_folder(path) else path
    if not workspace.contains(path):
        raise InputError.from_message(
            f"{named} leads out of the workspace", hint="name a file inside of it"
        )
