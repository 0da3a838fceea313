package barnabas.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** What the Java Admin client asks of groups and transactions. */
final class Coordinators {
    private final Admin admin;
    private final Connection connection;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();

    Coordinators(Admin admin, Connection connection) {
        this.admin = admin;
        this.connection = connection;
    }

    // Groups

    Object groups(Command command) throws Exception {
        var found = new TreeMap<String, Object>();
        for (GroupListing group : admin.listGroups().all().get()) {
            found.put(group.groupId(), List.of(group.type().get().toString(), group.groupState().get().toString()));
        }
        return found;
    }

    Object consumerGroup(Command command) throws Exception {
        var group = admin.describeConsumerGroups(List.of(command.group())).all().get().get(command.group());
        return Map.of(
                "type", group.type().toString(),
                "state", group.groupState().toString(),
                "assignor", group.partitionAssignor(),
                "coordinator", group.coordinator().id(),
                "partitions", partitions(group.members()));
    }

    Object classicGroup(Command command) throws Exception {
        var group = admin.describeClassicGroups(List.of(command.group())).all().get().get(command.group());
        return Map.of(
                "state", group.state().toString(),
                "protocol", group.protocol(),
                "coordinator", group.coordinator().id(),
                "partitions", partitions(group.members()));
    }

    private static List<Integer> partitions(Iterable<MemberDescription> members) {
        var found = new ArrayList<Integer>();
        members.forEach(member -> member.assignment().topicPartitions().forEach(each -> found.add(each.partition())));
        return found.stream().sorted().toList();
    }

    Object removeMembers(Command command) throws Exception {
        admin.removeMembersFromConsumerGroup(command.group(), new RemoveMembersFromConsumerGroupOptions())
                .all().get();
        return null;
    }

    Object deleteGroup(Command command) throws Exception {
        admin.deleteConsumerGroups(List.of(command.group())).all().get();
        return null;
    }

    Object committed(Command command) throws Exception {
        var found = new TreeMap<String, Object>();
        var offsets = admin.listConsumerGroupOffsets(command.group()).partitionsToOffsetAndMetadata().get();
        offsets.forEach((partition, committed) -> found.put(partition.toString(), committed.offset()));
        return found;
    }

    Object commit(Command command) throws Exception {
        var offset = new OffsetAndMetadata(command.before(), "by hand");
        admin.alterConsumerGroupOffsets(command.group(), Map.of(command.topicPartition(), offset)).all().get();
        return null;
    }

    Object forget(Command command) throws Exception {
        admin.deleteConsumerGroupOffsets(command.group(), Set.of(command.topicPartition())).all().get();
        return null;
    }

    // Transactions

    Object beginTransaction(Command command) throws Exception {
        var configs = connection.configs(Map.of("transactional.id", command.transactionalId()));
        var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer());
        producers.put(command.transactionalId(), producer);
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(command.topic(), command.partition(), null, command.value())).get();
        return null;
    }

    Object endTransaction(Command command) throws Exception {
        try (var producer = producers.remove(command.transactionalId())) {
            producer.commitTransaction();
        }
        return null;
    }

    Object transactions(Command command) throws Exception {
        var found = new TreeMap<String, Object>();
        for (var each : admin.listTransactions().all().get()) {
            found.put(each.transactionalId(), each.state().toString());
        }
        return found;
    }

    Object transaction(Command command) throws Exception {
        var found = admin.describeTransactions(List.of(command.transactionalId()))
                .description(command.transactionalId()).get();
        return Map.of(
                "state", found.state().toString(),
                "coordinator", found.coordinatorId(),
                "timeout", found.transactionTimeoutMs(),
                "partitions", found.topicPartitions().stream().map(Object::toString).toList());
    }

    Object fence(Command command) throws Exception {
        admin.fenceProducers(List.of(command.transactionalId())).all().get();
        return null;
    }

    Object terminate(Command command) throws Exception {
        admin.forceTerminateTransaction(command.transactionalId()).result().get();
        return null;
    }

    /** Aborts what is open in a partition, whoever has it open; gives how many transactions that were. */
    Object abort(Command command) throws Exception {
        var partition = command.topicPartition();
        var states = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
        int aborted = 0;
        for (var state : states) {
            if (state.currentTransactionStartOffset().isPresent()) {
                var epoch = (short) state.producerEpoch();
                var coordinatorEpoch = Math.max(state.coordinatorEpoch().orElse(0), 0);
                var open = new AbortTransactionSpec(partition, state.producerId(), epoch, coordinatorEpoch);
                admin.abortTransaction(open).all().get();
                aborted++;
            }
        }
        return aborted;
    }
}
