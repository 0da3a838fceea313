package barnabas.interop;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Reads, transforms and writes in transactions until it is killed: {@code Transform HOST:PORT INPUT OUTPUT GROUP}.
 *
 * <p>Whatever goes wrong, it starts again with the same transactional id: that ends what it has left open.
 */
public final class Transform {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration PAUSE = Duration.ofMillis(200);

    private final String output;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String incarnation = Long.toHexString(System.nanoTime());
    private int transactions;

    private Transform(
            String output, KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer) {
        this.output = output;
        this.consumer = consumer;
        this.producer = producer;
    }

    public static void main(String[] arguments) throws InterruptedException {
        while (true) {
            try (var consumer = consumer(arguments[0], arguments[3]);
                    var producer = producer(arguments[0], arguments[3])) {
                consumer.subscribe(List.of(arguments[1]));
                producer.initTransactions();
                new Transform(arguments[2], consumer, producer).run();
            } catch (InterruptException interrupted) {
                return;
            } catch (RuntimeException error) {
                System.err.println("starts again: " + error);
                Thread.sleep(PAUSE.toMillis());
            }
        }
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Map<String, Object> configs = Map.of(
                "bootstrap.servers", bootstrap,
                "group.id", group,
                "isolation.level", "read_committed",
                "auto.offset.reset", "earliest",
                "enable.auto.commit", false,
                "session.timeout.ms", 3_000,
                "heartbeat.interval.ms", 500,
                "max.poll.records", 50);
        return new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer());
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String group) {
        Map<String, Object> configs = Map.of(
                "bootstrap.servers", bootstrap,
                "transactional.id", group,
                "transaction.timeout.ms", 10_000,
                "delivery.timeout.ms", 8_000,
                "request.timeout.ms", 4_000,
                "max.block.ms", 8_000);
        return new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer());
    }

    private void run() {
        while (true) {
            var records = consumer.poll(POLL);
            if (!records.isEmpty()) {
                transform(records);
            }
        }
    }

    private void transform(ConsumerRecords<String, String> records) {
        String transaction = incarnation + "." + ++transactions + "/" + records.count();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        for (var record : records) {
            String value = record.value() + " " + transaction;
            producer.send(new ProducerRecord<>(output, record.partition(), record.key(), value));
            offsets.put(
                    new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
    }
}
