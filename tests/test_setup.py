"""What scripts/setup says of a machine that lacks something: its tools are what a test puts on the path."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SETUP = Path(__file__).parent.parent / "scripts" / "setup"

#: What setup uses that every machine has.
ORDINARY = ("bash", "sh", "cat", "sha256sum", "cut", "dirname", "basename", "grep", "seq", "sleep", "mktemp", "rm")
ORDINARY += ("tail", "head", "env", "touch")

JAVA = "echo 'openjdk version \"{}\"' >&2"
DOCKER = 'case "$1" in info | compose) exit 0 ;; esac; exit 1'


@dataclass(frozen=True)
class Machine:
    """A machine with nothing but the tools that are put there, and what setup did on it."""

    home: Path

    def put(self, name: str, script: str) -> "Machine":
        tool = self.home / "bin" / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return self

    def setup(self, **environment: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [self.home / "scripts" / "setup"],
            env={"PATH": str(self.home / "bin"), "HOME": str(self.home), **environment},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, [line.partition(": ")[2] for line in done.stderr.splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """All that is needed, for a user who is not root, whose path has no /usr/sbin; and a virtual environment that is
    there already."""
    for folder in ("bin", "scripts", ".venv/bin", ".venv/share/kafka-trial/conf"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ORDINARY:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    shutil.copy(SETUP, tmp_path / "scripts")
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text("")
    stamp = subprocess.run("sha256sum </dev/null | cut -c1-16", shell=True, capture_output=True, text=True, check=True)
    (tmp_path / ".venv" / f".locked-{stamp.stdout.strip()}").touch()
    (tmp_path / ".venv/share/kafka-trial/spark.jsa").touch()
    made = Machine(tmp_path)
    made.put("docker", DOCKER).put("java", JAVA.format("17.0.9")).put("python3", f'exec {sys.executable} "$@"')
    made.put("id", 'case "$1" in -u) echo 1000 ;; *) echo plain ;; esac')
    inner = tmp_path / ".venv/bin/python"
    inner.write_text("#!/bin/sh\nexit 0\n")
    inner.chmod(0o755)
    return made


def test_a_user_who_is_not_root_needs_docker_compose_java_and_python_alone(machine: Machine) -> None:
    assert machine.setup() == (0, [])


def test_an_old_java_is_refused_in_a_line(machine: Machine) -> None:
    assert machine.put("java", JAVA.format("11.0.2")).setup() == (
        1,
        ["not on this machine: openjdk-17-jre-headless (Debian's names). Install them and run this again."],
    )


def test_a_java_home_that_will_not_do_is_named(machine: Machine) -> None:
    code, said = machine.setup(JAVA_HOME="/nowhere")
    assert (code, said) == (1, ["JAVA_HOME is /nowhere: Java 17 or later is needed. Set it to one, or unset it."])


def test_an_old_python_is_passed_over_for_a_newer_one_beside_it(machine: Machine) -> None:
    newer = f'exec {sys.executable} "$@"'
    assert machine.put("python3", "exit 1").put("python3.12", newer).setup() == (0, [])


def test_setup_asks_for_a_newer_python_if_every_python_is_too_old(machine: Machine) -> None:
    code, said = machine.put("python3", "exit 1").setup()
    assert code == 1
    assert said == ["not on this machine: python3 python3-venv (Debian's names). Install them and run this again."]
    assert machine.setup(PYTHON="python3") == (
        1,
        ["PYTHON is python3: Python 3.11 or later is needed. Set it to one, or unset it."],
    )


def test_a_user_who_may_not_talk_to_docker_learns_how_to(machine: Machine) -> None:
    refused = 'case "$1" in compose) exit 0 ;; esac; echo "permission denied while trying to connect" >&2; exit 1'
    code, said = machine.put("docker", refused).setup()
    assert code == 1
    assert said == [
        "plain may not talk to the Docker engine: sudo usermod -aG docker plain, log in again, run this again."
    ]


def test_an_engine_that_is_not_started_is_not_called_missing(machine: Machine) -> None:
    stopped = 'case "$1" in compose) exit 0 ;; esac; echo "is the docker daemon running?" >&2; exit 1'
    code, said = machine.put("docker", stopped).setup()
    assert code == 1
    assert said == ["no Docker engine answers: start it (as root: systemctl start docker), and run this again."]


def test_an_engine_that_a_variable_names_and_does_not_answer_is_named_and_none_is_started(machine: Machine) -> None:
    stopped = 'case "$1" in compose) exit 0 ;; esac; echo "is the docker daemon running?" >&2; exit 1'
    log = machine.home / "log"
    machine.put("docker", stopped).put("dockerd", f"echo started >{log}").put("apt-get", f"echo got >{log}")
    machine.put("sudo", f'[ "$1" = -n ] && shift; [ "$1" = true ] || echo "$@" >>{log}')
    assert machine.setup(DOCKER_HOST="tcp://127.0.0.1:1") == (
        1,
        [
            "no Docker engine answers at DOCKER_HOST=tcp://127.0.0.1:1: correct it, unset it or start that one, and run"
            " this again."
        ],
    )
    assert not log.exists()


def test_sudo_is_asked_only_for_packages_and_that_is_said_first(machine: Machine) -> None:
    log = machine.home / "log"
    machine.put("sudo", f'[ "$1" = -n ] && shift; [ "$1" = true ] || echo "$@" >>{log}')
    machine.put("apt-get", "exit 1").put("java", JAVA.format("11.0.2"))
    code, said = machine.setup()
    assert said[0].startswith("installing openjdk-17-jre-headless")
    assert said[0].endswith(", by sudo")
    assert log.read_text().splitlines() == [
        "apt-get update -qq",
        "env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless",
    ]
    assert code == 1, "what was installed is looked at again"


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "no_proxy"])
def test_sudo_keeps_the_proxy_settings(name: str, machine: Machine) -> None:
    log = machine.home / "log"
    machine.put("sudo", f'[ "$1" = -n ] && shift; [ "$1" = true ] || echo "$@" >>{log}')
    machine.put("apt-get", "exit 1").put("java", JAVA.format("11.0.2")).setup(**{name: "http://me:secret@proxy:1"})
    kept = "--preserve-env=http_proxy,https_proxy,no_proxy apt-get update -qq"
    assert [log.read_text().splitlines()[0], "secret" in log.read_text()] == [kept, False]


def test_a_compose_that_does_not_run_is_replaced_by_the_one_that_this_system_has(machine: Machine) -> None:
    """As on Ubuntu 24.04: its docker-compose imports what its Python has not; docker-compose-v2 is the plugin."""
    log = machine.home / "log"
    machine.put("sudo", f'[ "$1" = -n ] && shift; [ "$1" = true ] || echo "$@" >>{log}')
    machine.put("docker", 'case "$1" in info) exit 0 ;; esac; exit 1').put("docker-compose", "exit 1")
    for shows, package in (
        ("echo $2", "docker-compose-v2"),
        ("exit 0", "docker-compose"),
        ("exit 100", "docker-compose"),
    ):
        machine.put("apt-get", "exit 0").put("apt-cache", shows)
        code, said = machine.setup()
        assert said[0].startswith(f"installing {package} (")
        assert log.read_text().splitlines()[-1].endswith(f"--no-install-recommends {package}")
        assert (code, said[-1]) == (
            1,
            "docker compose version fails, and docker-compose version: install Docker Compose and run this again.",
        )


@pytest.mark.parametrize(
    ("known", "packages"),
    [
        ("openjdk-17-jre-headless openjdk-21-jre-headless", "openjdk-17-jre-headless"),
        ("openjdk-21-jre-headless docker-cli", "openjdk-21-jre-headless"),
        ("", "openjdk-17-jre-headless"),
    ],
    ids=["Debian 12", "Debian 13", "before the first update"],
)
def test_setup_installs_the_java_package_that_the_system_offers(known: str, packages: str, machine: Machine) -> None:
    log = machine.home / "log"
    machine.put("sudo", f'[ "$1" = -n ] && shift; [ "$1" = true ] || echo "$@" >>{log}')
    machine.put("java", JAVA.format("11.0.2")).put("apt-get", "exit 0")
    machine.put("apt-cache", f'case " {known} " in *" $2 "*) echo "Package: $2" ;; esac')
    machine.setup()
    assert log.read_text().splitlines()[-1].endswith(f"--no-install-recommends {packages}")


@pytest.mark.parametrize(
    ("known", "client"), [("docker-cli", ["docker-cli"]), ("", [])], ids=["Debian 13", "Debian 12"]
)
def test_dockers_client_is_installed_where_it_is_missing(known: str, client: list[str], machine: Machine) -> None:
    log = machine.home / "log"
    machine.put("sudo", f'[ "$1" = -n ] && shift; [ "$1" = true ] || echo "$@" >>{log}')
    machine.put("apt-get", "exit 0").put("apt-cache", f'[ "$2" != "{known}" ] || echo "Package: $2"')
    (machine.home / "bin" / "docker").unlink()
    machine.setup()
    installed = log.read_text().splitlines()[-1].split(" --no-install-recommends ")[1].split()
    assert [name for name in installed if name != "iptables"] == ["docker.io", "docker-compose", *client]


def test_setup_installs_mmdebstrap_only_if_it_is_missing(machine: Machine) -> None:
    (machine.home / ".venv/bin/python").write_text("#!/bin/sh\necho mmdebstrap debian-archive-keyring\n")
    code, said = machine.setup()
    assert code == 1
    assert said == [
        "not on this machine: mmdebstrap debian-archive-keyring (Debian's names). Install them and run this again."
    ]


def test_a_python_that_is_asked_for_replaces_another_that_was_there(machine: Machine) -> None:
    log = machine.home / "log"
    machine.put("python3.99", f'case "$1" in -V) echo Python 3.99.1 ;; -m) echo "$@" >>{log} ;; esac')
    (machine.home / ".venv/bin/python").write_text("#!/bin/sh\n[ $1 != -V ] || echo Python 3.11.2\n")
    assert machine.setup() == (0, [])
    assert not log.exists()
    code, said = machine.setup(PYTHON="python3.99")
    assert (code, said[0].startswith("making .venv")) == (0, True)
    assert log.read_text() == "-m venv --clear .venv\n"
    (machine.home / ".venv/bin/python").write_text("#!/bin/sh\n[ $1 != -V ] || echo Python 3.99.1\n")
    code, said = machine.setup(PYTHON="python3.99")
    assert (code, any(line.startswith("making .venv") for line in said)) == (0, False)


def test_building_images_needs_none_of_the_packages_installed_last() -> None:
    """pip installs the biggest packages while the images are built."""
    found = re.search(r"keep = !/\^\(([\w|-]+)\)==/", SETUP.read_text())
    assert found is not None
    biggest = found[1].split("|")
    locked = (SETUP.parent.parent / "requirements.lock").read_text()
    assert [name for name in biggest if f"\n{name}==" not in locked] == []
    needs = "import sys; import harness.providers.docker.prebuild; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", needs], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()}.isdisjoint(biggest)
