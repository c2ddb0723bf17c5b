"""The Java that Spark, on this machine, and Kafka's nodes need."""

#: Spark 4 and Kafka 4 run on this one or later (SPARK-45315, KIP-1013).
OLDEST = 17

#: The package of Debian and Ubuntu that has it.
PACKAGE = f"openjdk-{OLDEST}-jre-headless"
