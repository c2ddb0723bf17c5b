"""What is installed from a wheel finds its scenarios and image recipes."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel would put on a machine, built away from the repo."""
    target = tmp_path_factory.mktemp("wheel")
    egg_info = tmp_path_factory.mktemp("egg")
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "egg_info",
        "-e",
        str(egg_info),
        "build_py",
        "--build-lib",
        str(target),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return target


@pytest.mark.parametrize("folder", ["docker", "scenarios"])
def test_every_file_of_the_folder_is_in_the_wheel(installed: Path, folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    assert files
    for path in files:
        packed = installed / "harness/_data" / path.relative_to(ROOT)
        assert packed.read_bytes() == path.read_bytes()


def test_the_report_brings_its_template(installed: Path) -> None:
    assert list((installed / "harness/report/templates").iterdir())


def test_an_installed_package_loads_its_own_scenarios(installed: Path) -> None:
    program = (
        "import harness.resources as r, harness.scenario.loading as l; "
        "print(r.scenarios(), len(l.catalogue()), r.recipes().joinpath('kafka/Dockerfile').is_file())"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=installed, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(installed)}
    )
    folder, count, recipes = done.stdout.split()
    assert folder == str(installed / "harness/_data/scenarios")
    assert int(count) >= 15
    assert recipes == "True"
