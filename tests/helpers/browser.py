"""Real browsers without a driver: Chromium by the pipe of DevTools, Firefox by Marionette."""

import json
import os
import shutil
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRWPair
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)

_FLAGS = (
    *(
        "--headless",
        "--hide-scrollbars",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
)


class Page:
    """A page that runs scripts."""

    def run(self, script: str) -> Any:
        """Return the value of an expression, which may be a promise."""
        raise NotImplementedError

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        for _ in range(10_000):
            if self.run(condition):
                return
            time.sleep(0.02)  # not a timer of the page, which may not run scripts
        raise AssertionError(f"never true: {condition}")

    def texts(self, selector: str) -> list[str]:
        """The texts of all visible elements."""
        found: list[str] = self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".filter((each) => each.checkVisibility()).map((each) => each.innerText)"
        )
        return found


class Browser(Page):
    """One page of Chromium.

    Attributes:
        faults: exceptions of the page, and violations of its content security policy.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.faults: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file completely."""
        self.go(f"{page.as_uri()}{fragment}")

    def go(self, url: str) -> None:
        """Load a page completely."""
        self._send("Page.navigate", url="about:blank")
        self._send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Return the value of an expression, which may be a promise."""
        answer = self._send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, given by its name or its character."""
        code = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "ArrowRight": 39}.get(key, 0)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            self._send(
                "Input.dispatchKeyEvent",
                type=kind, key=key, windowsVirtualKeyCode=code, text=text,
            )  # fmt: skip

    def write(self, text: str) -> None:
        """Type characters into the element with the focus."""
        for character in text:
            self.press(character)

    def look(
        self, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = ""
    ) -> None:
        """Set the window's size, the preferred color scheme and the medium; colors do not fade."""
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce"}
        self._send("Emulation.setEmulatedMedia", media=media, features=[scheme, motion])

    def without_scripts(self) -> None:
        """Disable scripts, from the next page on."""
        self._send("Emulation.setScriptExecutionDisabled", value=True)

    def picture(self, file: Path) -> None:
        """Save a screenshot, as PNG or WebP by the file's name."""
        form = {"format": "webp", "quality": 80} if file.suffix == ".webp" else {"format": "png"}
        file.write_bytes(b64decode(self._send("Page.captureScreenshot", **form)["data"]))

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            if answer.get("method") == "Runtime.exceptionThrown":
                self.faults.append(str(answer["params"]["exceptionDetails"]))
            if answer.get("method") == "Log.entryAdded":
                self.faults.append(answer["params"]["entry"]["text"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._answers, 1 << 20)
            assert piece, "the browser is gone"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with its profile in ``folder``."""
    assert PROGRAM is not None
    taken, commands = os.pipe()
    answers, given = os.pipe()
    program = subprocess.Popen(
        [
            *("bash", "-c", f'exec "$0" "$@" 3<&{taken} 4>&{given}'),
            *(PROGRAM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"),
        ],
        pass_fds=(taken, given),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(taken)
    os.close(given)
    try:
        yield Browser(commands, answers)
    finally:
        program.kill()
        program.wait()
        os.close(commands)
        os.close(answers)


FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
_KEYS = {"Enter": "\ue007", "Escape": "\ue00c"}


class Firefox(Page):
    """One page of Firefox."""

    def __init__(self, stream: "BufferedRWPair[Any, Any]") -> None:
        self._stream = stream
        self._number = 0
        self._receive()
        self._send("WebDriver:NewSession")

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file completely."""
        self._send("WebDriver:Navigate", url="about:blank")
        self._send("WebDriver:Navigate", url=f"{page.as_uri()}{fragment}")

    def run(self, script: str) -> Any:
        """Return the value of an expression, which may be a promise."""
        found = self._send("WebDriver:ExecuteScript", script=f"return ({script})", args=[])
        return found["value"]

    def press(self, key: str) -> None:
        """Press a key, given by its name or its character."""
        value = _KEYS.get(key, key)
        actions = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
        self._send(
            "WebDriver:PerformActions",
            actions=[{"type": "key", "id": "keyboard", "actions": actions}],
        )

    def _send(self, command: str, **parameters: Any) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._stream.write(b"%d:%s" % (len(message), message))
        self._stream.flush()
        _, _, error, result = self._receive()
        assert error is None, error
        return result

    def _receive(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            assert digit, "the browser is gone"
            length += digit
        return json.loads(self._stream.read(int(length)))


@contextmanager
def firefox(folder: Path) -> Iterator[Firefox]:
    """Firefox with its profile in ``folder``."""
    assert FIREFOX is not None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "user.js").write_text('user_pref("marionette.port", 0);\n')
    program = subprocess.Popen(
        [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(folder)],
        env={**os.environ, "HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = folder / "MarionetteActivePort"
        while not (port.exists() and port.read_text()):
            assert program.poll() is None, "Firefox does not start"
            time.sleep(0.05)
        with (
            socket.create_connection(("127.0.0.1", int(port.read_text()))) as connection,
            connection.makefile("rwb") as stream,
        ):
            yield Firefox(stream)
    finally:
        program.kill()
        program.wait()
