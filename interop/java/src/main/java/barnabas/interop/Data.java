package barnabas.interop;

import static java.nio.charset.StandardCharsets.UTF_8;

import barnabas.interop.Command.Line;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The operations of the Java producer and consumer, each with a client of its own. */
final class Data {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final Connection connection;

    Data(Connection connection) {
        this.connection = connection;
    }

    Object produce(Command command) throws Exception {
        Map<String, Object> configs = connection.configs(
                Map.of("compression.type", command.codec(), "enable.idempotence", command.idempotent()));
        var offsets = new ArrayList<Long>();
        try (var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (Line line : command.records()) {
                sent.add(producer.send(toKafka(command, line)));
            }
            for (var each : sent) {
                offsets.add(each.get().offset());
            }
        }
        return offsets;
    }

    Object transact(Command command) throws Exception {
        var configs = connection.configs(Map.of("transactional.id", command.transactionalId()));
        try (var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (Line line : command.records()) {
                producer.send(toKafka(command, line));
            }
            producer.flush();
            if (command.commit()) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        return null;
    }

    private static ProducerRecord<String, String> toKafka(Command command, Line line) {
        var headers = new ArrayList<Header>();
        for (var header : line.headers() == null ? List.<List<String>>of() : line.headers()) {
            headers.add(new RecordHeader(header.get(0), header.get(1).getBytes(UTF_8)));
        }
        return new ProducerRecord<>(
                command.topic(), command.partition(), line.timestamp(), line.key(), line.value(), headers);
    }

    Object consume(Command command) throws Exception {
        Map<String, Object> configs = connection.configs(Map.of());
        try (var consumer = new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(command.topicPartition()));
            seek(consumer, command);
            return read(consumer, command.count());
        }
    }

    private static void seek(KafkaConsumer<String, String> consumer, Command command) {
        var partition = command.topicPartition();
        if (command.timestamp() == null) {
            consumer.seekToBeginning(List.of(partition));
        } else {
            var found = consumer.offsetsForTimes(Map.of(partition, command.timestamp()));
            consumer.seek(partition, found.get(partition).offset());
        }
    }

    private static List<Line> read(KafkaConsumer<String, String> consumer, int count) throws TimeoutException {
        var read = new ArrayList<Line>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (read.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new TimeoutException(read.size() + " of " + count + " records read");
            }
            consumer.poll(Duration.ofMillis(200)).forEach(record -> read.add(fromKafka(record)));
        }
        return read.subList(0, count);
    }

    private static Line fromKafka(ConsumerRecord<String, String> record) {
        var headers = Arrays.stream(record.headers().toArray())
                .map(header -> List.of(header.key(), new String(header.value(), UTF_8)))
                .toList();
        return new Line(record.key(), record.value(), headers, record.timestamp(), record.offset());
    }
}
