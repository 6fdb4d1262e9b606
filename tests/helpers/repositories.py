"""Real git repositories."""

import subprocess
from pathlib import Path

# No git settings of the user who runs the tests: no name, no signing, no hooks.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_NAME": "T" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "t@example.org" for who in ("AUTHOR", "COMMITTER")},
}


def git(folder: Path, *arguments: str) -> str:
    """Run ``git ARGUMENTS`` and return its stripped output."""
    ran = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def repository(folder: Path) -> Path:
    """Create an empty repository with the branch ``main``."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder


def commit(folder: Path, message: str = "a change") -> str:
    """Commit all files and return the commit id."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")
