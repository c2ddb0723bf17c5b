"""Kafka as it is copied to machines: one file for each version, named by its content."""

import hashlib
import shlex
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.cluster.distribution import SCRIPTS, pom
from harness.cluster.jars import fetch_jars
from harness.cluster.one_at_a_time import CACHE, one_at_a_time
from harness.providers.ssh.looking import room_for
from harness.providers.ssh.machine import Broken, Machine
from harness.providers.ssh.text import KAFKA, MachinePaths
from harness.resources import recipes

#: Bytes that are read and sent at once. A choice: few calls for 100 MB, and timely progress on a slow line.
_CHUNK = 1 << 18

#: How many connections may break while one file is copied. Each continues where the last one ended.
_BREAKS = 5

#: Seconds to unpack a copy and to write it to a slow disk.
_UNPACKED_S = 300.0

#: Seconds between two progress lines of a copy.
_PROGRESS_EVERY_S = 3.0


@dataclass(frozen=True)
class Bundle:
    """A tar of Kafka's jars and the start script. ``name``: the version, and a part of the content's SHA-256."""

    path: Path
    version: str
    digest: str

    @property
    def name(self) -> str:
        """The name of its directory on a machine."""
        return f"{self.version}-{self.digest[:12]}"


def bundle(version: str) -> Bundle:
    """The bundle of a version. If it is not cached, it is made from Maven Central's jars. Raises EnvironmentLacks."""
    project = pom(version)
    scripts = b"".join((recipes() / "kafka" / name).read_bytes() for name in SCRIPTS)
    made_of = hashlib.sha256(project.encode() + scripts).hexdigest()[:12]
    path = CACHE / f"kafka-{version}-{made_of}.tar"
    with one_at_a_time(f"bundle-{version}"):
        if not path.exists():
            with tempfile.TemporaryDirectory(prefix="kafka-trial-") as scratch:
                whole = Path(scratch, "kafka.tar")
                _pack(fetch_jars(version, project, Path(scratch)), whole)
                temporary = path.with_suffix(".new")
                shutil.copyfile(whole, temporary)
                temporary.rename(path)
    with path.open("rb") as file:
        return Bundle(path, version, hashlib.file_digest(file, "sha256").hexdigest())


def _pack(libraries: Path, target: Path) -> None:
    """Pack files so that the same files give the same bytes: sorted by name, without times and owners."""
    entries = [(f"libs/{jar.name}", jar) for jar in sorted(libraries.glob("*.jar"))]
    entries += [(name, recipes() / "kafka" / name) for name in SCRIPTS]
    with tarfile.TarFile(target, "w") as tar:
        for name, file in entries:
            info = tarfile.TarInfo(name)
            info.size = file.stat().st_size
            with file.open("rb") as content:
                tar.addfile(info, content)


def copy(bundle: Bundle, machine: Machine, progress: Callable[[str], None]) -> str:
    """Copy a version of Kafka to a machine, unless the machine has it, and return its directory there.

    A copy that was interrupted is continued. ``progress`` gets a line now and then. Raises ClusterError, and
    EnvironmentLacks if the machine has too little space.
    """
    paths = MachinePaths(machine.host.data)
    home, part = paths.kafka(bundle.name), f"{paths.data}/{KAFKA}/{bundle.name}.part"
    q_home, q_part, size = shlex.quote(home), shlex.quote(part), bundle.path.stat().st_size
    look = (
        f"if [ -d {q_home} ]; then echo whole; exit 0; fi\n"
        f"mkdir -p {shlex.quote(f'{paths.data}/{KAFKA}')}\n"
        f"if [ -e {q_part} ]; then wc -c <{q_part}; else echo 0; fi\n"
    )
    unpack = (
        f"read -r digest rest <<END\n$(sha256sum {q_part})\nEND\n"
        f'if [ "$digest" != {bundle.digest} ]; then\n'
        f"  rm -f {q_part}\n  echo 'what arrived is not what was sent' >&2\n  exit 1\nfi\n"
        f"rm -rf {q_home}.new\nmkdir {q_home}.new\ntar -xf {q_part} --no-same-owner -C {q_home}.new\nsync\n"
        f"mv {q_home}.new {q_home}\nrm -f {q_part}\n"
    )
    doing = f"copy Kafka {bundle.version}"
    with room_for(f"Kafka {bundle.version} ({size >> 20} MB, twice while it is unpacked)", machine):
        for tries_left in reversed(range(_BREAKS)):
            copied = machine.run(look, doing).strip()
            if copied == "whole":
                break
            try:
                _send(bundle, machine, part, int(copied) if int(copied) <= size else 0, doing, progress)
                machine.run(unpack, doing, _UNPACKED_S)
            except Broken:
                if not tries_left:
                    raise
    return home


def _send(bundle: Bundle, machine: Machine, part: str, begin: int, doing: str, progress: Callable[[str], None]) -> None:
    size = bundle.path.stat().st_size
    reported = time.monotonic()

    def chunks() -> Iterator[bytes]:
        nonlocal reported
        with bundle.path.open("rb") as file:
            file.seek(begin)
            while chunk := file.read(_CHUNK):
                yield chunk
                if time.monotonic() - reported >= _PROGRESS_EVERY_S:
                    reported = time.monotonic()
                    progress(f"{machine.called}: {doing}: {file.tell() >> 20} of {size >> 20} MB")

    if begin < size:
        resumed = f", from {begin >> 20} MB on" if begin else ""
        progress(f"{machine.called}: {doing}: {size >> 20} MB{resumed}")
        machine.write(part, chunks(), doing, append=begin > 0)
