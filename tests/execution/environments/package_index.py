"""A local package index with generated packages."""

import base64
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

SDK = "agentevals-evaluator-sdk"

BUILD_SETTINGS = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import os, shutil
def build_wheel(folder, config_settings=None, metadata_directory=None):
    exec(open("script.py").read(), {})
    name = open("name").read()
    shutil.copy("wheel", os.path.join(folder, name))
    return name
"""


class PackageIndex:
    """Serves wheels with one module each and records the requests.

    Attributes:
        requested: paths, in the order of the requests.
        algorithm: of the digests in the package pages; empty for none.
    """

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.algorithm = "sha256"
        self._wheels: dict[str, dict[str, bytes]] = {}
        self._held: dict[str, threading.Event] = {}
        self._asked = threading.Condition()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index._answer(self)

            def do_HEAD(self) -> None:
                index._answer(self)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        """The address for installers."""
        return f"http://127.0.0.1:{self._server.server_port}/simple"

    def add(
        self,
        name: str,
        version: str,
        *,
        needs: Sequence[str] = (),
        source: str | None = None,
        files: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Offer a package with a module and ``files``, and return the sha256 of its wheel."""
        module = name.replace("-", "_")
        text = f"VERSION = {version!r}\n" if source is None else source
        wheel = _wheel(name, version, needs, {f"{module}.py": text, **files})
        self._wheels.setdefault(name, {})[f"{module}-{version}-py3-none-any.whl"] = wheel
        return hashlib.sha256(wheel).hexdigest()

    def add_source(self, name: str, version: str, script: str = "") -> str:
        """Offer a package without a wheel, whose build runs ``script``; return its sha256."""
        module = name.replace("-", "_")
        made = io.BytesIO()
        files: dict[str, str | bytes] = {
            "pyproject.toml": BUILD_SETTINGS,
            "backend.py": BACKEND,
            "script.py": script,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "wheel": _wheel(name, version, (), {f"{module}.py": f"VERSION = {version!r}\n"}),
            "name": f"{module}-{version}-py3-none-any.whl",
        }
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            for path, content in files.items():
                data = content if isinstance(content, bytes) else content.encode()
                member = tarfile.TarInfo(f"{module}-{version}/{path}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        source = made.getvalue()
        self._wheels.setdefault(name, {})[f"{module}-{version}.tar.gz"] = source
        return hashlib.sha256(source).hexdigest()

    def hold(self, name: str) -> None:
        """Delay requests for the wheels of ``name`` until they are released."""
        self._held[name] = threading.Event()

    def release(self, name: str) -> None:
        """Answer the delayed requests and all later ones."""
        self._held.pop(name).set()

    def wait_for(self, part: str) -> None:
        """Wait until a path that contains ``part`` is requested."""
        with self._asked:
            self._asked.wait_for(lambda: any(part in path for path in self.requested))

    def count(self, part: str) -> int:
        """How many requests there were for paths that contain ``part``."""
        return sum(part in path for path in self.requested)

    def close(self) -> None:
        """Stop the server after answering delayed requests."""
        for name in list(self._held):
            self.release(name)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            with self._asked:
                self.requested.append(request.path)
                self._asked.notify_all()
        _, kind, name, *rest = request.path.split("/")
        wheels = self._wheels.get(name, {})
        if kind == "files" and rest[0] in wheels:
            held = self._held.get(name)
            if held and request.command == "GET":
                held.wait()
            self._send(request, 200, "application/octet-stream", wheels[rest[0]])
        elif kind == "simple" and wheels:
            self._send(request, 200, "text/html", self._page(name, wheels))
        else:
            self._send(request, 404, "text/plain", b"there is none")

    def _page(self, name: str, wheels: dict[str, bytes]) -> bytes:
        links = [
            f'<a href="/files/{name}/{file}{self._fragment(wheel)}">{file}</a>'
            for file, wheel in wheels.items()
        ]
        return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()

    def _fragment(self, wheel: bytes) -> str:
        if not self.algorithm:
            return ""
        return f"#{self.algorithm}={hashlib.new(self.algorithm, wheel).hexdigest()}"

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, status: int, kind: str, content: bytes) -> None:
        try:
            request.send_response(status)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(content)
        except OSError:
            pass  # some tests kill the client


def _wheel(name: str, version: str, needs: Sequence[str], modules: Mapping[str, str]) -> bytes:
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    wanted = "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        **modules,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wanted}",
        f"{about}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{path},{_digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            # With a fixed date, so that the same package has the same digest.
            archive.writestr(zipfile.ZipInfo(path), text)
    return made.getvalue()


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"
