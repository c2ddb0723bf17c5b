import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Uses a broker as the clients of a run do: its classes for that are archived, too. Argument: bootstrap.servers. */
public class WarmUp {
    public static void main(String[] args) throws Exception {
        Map<String, Object> to = Map.of("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(to)) {
            admin.createTopics(List.of(new NewTopic("trial", 3, (short) 1))).all().get();
            admin.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.BROKER, "1"))).all().get();
        }
        Map<String, Object> writes = new HashMap<>(to);
        writes.put("transactional.id", "t");
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(writes, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int n = 0; n < 9; n++) producer.send(new ProducerRecord<>("trial", n % 3, null, new byte[9])).get();
            producer.commitTransaction();
        }
        Map<String, Object> reads = new HashMap<>(to);
        reads.putAll(Map.of("group.id", "g", "auto.offset.reset", "earliest"));
        try (Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(reads, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("trial"));
            for (int got = 0; got < 9; got += consumer.poll(Duration.ofSeconds(1)).count());
            consumer.commitSync();
        }
    }
}
