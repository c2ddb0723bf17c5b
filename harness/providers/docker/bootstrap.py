"""Makes a Debian base image with mmdebstrap, if no registry has one."""

import io
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from docker import DockerClient

from harness.cluster.jars import run_tool
from harness.core.errors import ClusterError, EnvironmentLacks
from harness.providers.docker.shell import labels_of_no_run, run_toolbox

#: Debian's keys. Other distributions have them in a package.
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

#: The folders of this machine that mmdebstrap and apt use.
_USED = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/var/lib/dpkg")

_EMPTY = "kafka-trial/empty"


def lacking_to_make() -> list[str]:
    """The Debian packages that this machine lacks to make a base."""
    needs = {"mmdebstrap": bool(shutil.which("mmdebstrap")), "debian-archive-keyring": _KEYS.exists()}
    return [package for package, installed in needs.items() if not installed]


def make_base(client: DockerClient, packages: Sequence[str], suite: str, archive: Path, root: bool) -> None:
    """Put a Debian system with some packages into an archive. The archive has a folder of its own.

    mmdebstrap needs ``root``. For another user it runs in a container, which sees this machine's programs, and can
    write only to the archive's folder. Raises EnvironmentLacks.
    """
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", suite]
    if root:
        run_tool([*command, str(archive)], f"a base of Debian {suite}")
        return
    mounts = {path: {"bind": path, "mode": "ro"} for path in _USED if Path(path).exists()}
    mounts[str(archive.parent)] = {"bind": "/made", "mode": "rw"}
    script = f"{' '.join(command)} --mode=root /made/{archive.name}"
    tag = archive.parent.name
    with labels_of_no_run() as labels:
        client.api.import_image_from_data(_hollow(), _EMPTY, tag)
        try:
            run_toolbox(
                client,
                f"{_EMPTY}:{tag}",
                script,
                labels,
                doing="mmdebstrap in a container",
                volumes=mounts,
                cap_add=["SYS_ADMIN"],
                security_opt=["apparmor=unconfined", "seccomp=unconfined"],
            )
        except ClusterError as exc:
            raise EnvironmentLacks(f"a base of Debian {suite} cannot be made: {exc}") from exc
        finally:
            client.images.remove(f"{_EMPTY}:{tag}", force=True)


def _hollow() -> bytes:
    """An archive with /tmp, and with the user root, whom Docker looks up before it mounts anything."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        scratch = tarfile.TarInfo("tmp")
        scratch.type, scratch.mode = tarfile.DIRTYPE, 0o1777
        files.addfile(scratch)
        users = b"root:x:0:0:root:/:/bin/sh\n"
        passwd = tarfile.TarInfo("etc/passwd")
        passwd.size = len(users)
        files.addfile(passwd, io.BytesIO(users))
    return archive.getvalue()
