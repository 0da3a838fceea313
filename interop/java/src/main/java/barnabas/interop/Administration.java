package barnabas.interop;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** The operations of the Java Admin client. */
final class Administration {
    private final Admin admin;

    Administration(Admin admin) {
        this.admin = admin;
    }

    Object metadata(Command command) throws Exception {
        var topics = command.topic() == null ? admin.listTopics().names().get() : List.of(command.topic());
        var described = admin.describeTopics(topics).allTopicNames().get();
        var brokers = admin.describeCluster().nodes().get().stream();
        return Map.of(
                "brokers", brokers.map(node -> node.host() + ":" + node.port()).toList(),
                "topics", described.values().stream()
                        .collect(Collectors.toMap(TopicDescription::name, Administration::partitions)));
    }

    private static List<Integer> partitions(TopicDescription topic) {
        return topic.partitions().stream().map(TopicPartitionInfo::partition).toList();
    }

    Object createTopic(Command command) throws Exception {
        var topic = new NewTopic(command.topic(), Optional.of(command.partitions()), Optional.empty());
        admin.createTopics(List.of(topic.configs(command.configs()))).all().get();
        return null;
    }

    Object deleteTopic(Command command) throws Exception {
        admin.deleteTopics(List.of(command.topic())).all().get();
        return null;
    }

    Object createPartitions(Command command) throws Exception {
        var count = NewPartitions.increaseTo(command.count());
        admin.createPartitions(Map.of(command.topic(), count)).all().get();
        return null;
    }

    Object topicConfigs(Command command) throws Exception {
        return configs(new ConfigResource(ConfigResource.Type.TOPIC, command.topic()));
    }

    Object brokerConfigs(Command command) throws Exception {
        return configs(new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(command.broker())));
    }

    private Object configs(ConfigResource resource) throws Exception {
        Config config = admin.describeConfigs(List.of(resource)).values().get(resource).get();
        var values = new TreeMap<String, String>();
        config.entries().forEach(entry -> values.put(entry.name(), entry.value()));
        return values;
    }

    Object offsets(Command command) throws Exception {
        return Map.of(
                "earliest", list(command, OffsetSpec.earliest()).offset(),
                "latest", list(command, OffsetSpec.latest()).offset());
    }

    Object offsetAt(Command command) throws Exception {
        long found = list(command, OffsetSpec.forTimestamp(command.timestamp())).offset();
        return found < 0 ? null : found;
    }

    private ListOffsetsResultInfo list(Command command, OffsetSpec spec) throws Exception {
        var partition = command.topicPartition();
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
    }

    Object deleteRecords(Command command) throws Exception {
        var partition = command.topicPartition();
        var before = RecordsToDelete.beforeOffset(command.before());
        return admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark();
    }
}
