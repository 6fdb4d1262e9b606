"""Build zip and tar archives, including invalid ones."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence


def zipped(files: Mapping[str, bytes | str], *, modes: Mapping[str, int] | None = None) -> bytes:
    """Make a zip archive; names are written unchanged, ``modes`` are values of ``st_mode``."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zip_info(name, (modes or {}).get(name, 0o100644)), data)
    return content.getvalue()


def zip_info(name: str, mode: int) -> zipfile.ZipInfo:
    """Make the header of a deflated member of a zip archive."""
    info = zipfile.ZipInfo("x")
    info.filename = info.orig_filename = name
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def tarred(members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Make a gzipped tar archive."""
    return gzip.compress(plain_tar(members), mtime=0)


def plain_tar(members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Make an uncompressed tar archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return content.getvalue()


def tar_files(files: Mapping[str, bytes]) -> bytes:
    """Make a gzipped tar archive of regular files."""
    return tarred([(tar_info(name, size=len(data)), data) for name, data in files.items()])


def tar_info(
    name: str, *, kind: bytes = tarfile.REGTYPE, size: int = 0, mode: int = 0o644, link: str = ""
) -> tarfile.TarInfo:
    """Make the header of a member of a tar archive."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode, info.linkname = kind, size, mode, link
    return info
