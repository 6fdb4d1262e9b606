import os

from attempts import CONFIG, attempt, report

WORKSPACE = os.getcwd()


def act(function, *arguments):
    """The effect of a call that returns nothing."""
    function(*arguments)
    return "done"


def path(name):
    return os.path.join(WORKSPACE, name)


def append(name, text="x"):
    with open(name, "a") as file:
        return file.write(text)


for name in CONFIG["names"]:
    attempt(f"append {name}", lambda: append(path(name)))
    attempt(f"truncate {name}", lambda: act(os.truncate, path(name), 0))
    attempt(f"chmod {name}", lambda: act(os.chmod, path(name), 0o777))
    attempt(f"remove {name}", lambda: act(os.unlink, path(name)))
for name in CONFIG["outside"]:
    attempt(f"append {name}", lambda: append(name, "passed=true\n"))
attempt("rename", lambda: act(os.rename, path("agentci-results"), path("others")))
attempt("mkdir", lambda: act(os.mkdir, path("folder")))
attempt("symlink", lambda: act(os.symlink, "/etc/passwd", path("link")))
attempt("hard link", lambda: act(os.link, path("agentci.yaml"), f"{os.environ['TMPDIR']}/hard"))
attempt("mkfifo", lambda: act(os.mkfifo, path("pipe")))
attempt("/tmp", lambda: append(f"/tmp/{CONFIG['word']}"))
attempt("beside TMPDIR", lambda: append(f"{os.environ['TMPDIR']}/../../{CONFIG['word']}"))
attempt("utime", lambda: act(os.utime, path("agentci.yaml"), (0, 0)))
attempt("setxattr", lambda: act(os.setxattr, path("agentci.yaml"), "user.x", b"1"))
report()
