package barnabas.interop;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a group beside the commands: it reads in a thread of its own until it leaves. */
final class Membership {
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");

    private final Connection connection;
    private final List<String> values = new CopyOnWriteArrayList<>();
    private final ExecutorService thread = Executors.newSingleThreadExecutor(run -> {
        var made = new Thread(run);
        made.setDaemon(true);
        return made;
    });
    private final AtomicInteger assignments = new AtomicInteger();
    private volatile List<Integer> partitions = List.of();
    private volatile boolean leaving;
    private Future<?> reading;

    Membership(Connection connection) {
        this.connection = connection;
    }

    Object join(Command command) {
        values.clear();
        assignments.set(0);
        partitions = List.of();
        leaving = false;
        reading = thread.submit(() -> read(command));
        return null;
    }

    private void read(Command command) {
        try (var consumer = new KafkaConsumer<>(configs(command), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(command.topic()), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    assignments.incrementAndGet();
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                }
            });
            while (!leaving) {
                consumer.poll(Duration.ofMillis(50)).forEach(record -> values.add(record.value()));
                partitions = consumer.assignment().stream().map(TopicPartition::partition).sorted().toList();
            }
        }
    }

    private Map<String, Object> configs(Command command) {
        var configs = connection.configs(Map.of("group.id", command.group(), "auto.offset.reset", "earliest"));
        if ("consumer".equals(command.protocol())) {
            configs.put("group.protocol", "consumer");
        } else {
            var assignor = ASSIGNORS.get(command.strategy() == null ? "range" : command.strategy());
            configs.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            configs.put("heartbeat.interval.ms", 200);
        }
        if (command.instance() != null) {
            configs.put("group.instance.id", command.instance());
            configs.put("session.timeout.ms", 6000);
        }
        return configs;
    }

    Object tell(Command command) throws Exception {
        if (reading.isDone()) {
            reading.get();
        }
        return Map.of("partitions", partitions, "values", values, "assignments", assignments.get());
    }

    Object leave(Command command) throws Exception {
        leaving = true;
        reading.get();
        return null;
    }
}
