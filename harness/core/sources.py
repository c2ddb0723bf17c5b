"""Where Kafka says what it promises, in the words of a verdict: the sources that several rows name."""

REPLICATION = "Kafka documentation, Design, Replication"
SEMANTICS = "Kafka documentation, Design, Message Delivery Semantics"
PRODUCER = "Kafka documentation, producer configuration"
TOPIC = "Kafka documentation, topic configuration"
ISOLATION = "Kafka documentation, consumer configuration, isolation.level"
