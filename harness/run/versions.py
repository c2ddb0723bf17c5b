"""The versions of the software that made a run, for run.json."""

import platform
from importlib.metadata import version

import confluent_kafka


def versions(kafka: str | None = None) -> dict[str, str]:
    """The versions that one needs to repeat a run. ``kafka``: the brokers' version."""
    return {
        **({} if kafka is None else {"kafka": kafka}),
        "kafka-trial": version("kafka-trial"),
        "librdkafka": confluent_kafka.libversion()[0],
        "confluent-kafka": version("confluent-kafka"),
        "pyspark": version("pyspark"),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }
