"""``python -m harness.providers.docker.prebuild``: the images of the default version, built before a run needs them."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from docker import DockerClient

from harness.cluster.spec import DEFAULT_VERSION
from harness.core.errors import EnvironmentLacks
from harness.providers.docker.engine import connect
from harness.providers.docker.images import kafka_image, toolbox_image


def main(connect: Callable[[], DockerClient] = connect) -> int:
    """Build what is missing, and say so on stderr as it goes. Returns an exit code: 3 where an image cannot be had."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"images {time.monotonic() - began:2.0f} s: {text}", file=sys.stderr, flush=True)

    def build(what: str, image: Callable[[DockerClient], str]) -> None:
        say(f"looking for {what}; building it takes about a minute")
        say(f"{image(client)} is there")

    try:
        client = connect()
        with ThreadPoolExecutor() as pool:
            asked = [
                pool.submit(build, "the toolbox (iptables, tc)", toolbox_image),
                pool.submit(build, f"Kafka {DEFAULT_VERSION}", lambda client: kafka_image(client, DEFAULT_VERSION)),
            ]
            for image in asked:
                image.result()
    except EnvironmentLacks as exc:
        print(f"images: {exc}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
