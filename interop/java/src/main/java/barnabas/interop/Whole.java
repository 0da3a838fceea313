package barnabas.interop;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;

/** What the Java Admin client can ask of a cluster that the other clients have no call for. */
final class Whole {
    private final Admin admin;

    Whole(Admin admin) {
        this.admin = admin;
    }

    Object cluster(Command command) throws Exception {
        var described = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        var answer = new LinkedHashMap<String, Object>();
        answer.put("id", described.clusterId().get());
        answer.put("controller", described.controller().get().id());
        answer.put("fenced", described.nodes().get().stream().filter(Node::isFenced).count());
        answer.put("operations", names(described.authorizedOperations().get()));
        return answer;
    }

    private static List<String> names(Collection<AclOperation> operations) {
        return operations.stream().map(AclOperation::name).sorted().toList();
    }

    Object features(Command command) throws Exception {
        var metadata = admin.describeFeatures().featureMetadata().get();
        var levels = new TreeMap<String, Object>();
        metadata.supportedFeatures().forEach((name, range) -> levels.put(
                name, List.of(range.minVersion(), range.maxVersion())));
        return Map.of("supported", levels, "finalized", metadata.finalizedFeatures().size());
    }

    Object tryFeature(Command command) throws Exception {
        var update = new FeatureUpdate((short) command.count(), FeatureUpdate.UpgradeType.UPGRADE);
        var options = new UpdateFeaturesOptions().validateOnly(true);
        admin.updateFeatures(Map.of(command.key(), update), options).all().get();
        return null;
    }

    Object quorum(Command command) throws Exception {
        QuorumInfo info = admin.describeMetadataQuorum().quorumInfo().get();
        var voters = info.voters().stream().map(QuorumInfo.ReplicaState::replicaId).toList();
        return Map.of("leader", info.leaderId(), "voters", voters, "observers", info.observers().size());
    }

    Object addVoter(Command command) throws Exception {
        var endpoint = new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 9093);
        admin.addRaftVoter(command.broker(), Uuid.randomUuid(), Set.of(endpoint)).all().get();
        return null;
    }

    Object removeVoter(Command command) throws Exception {
        admin.removeRaftVoter(command.broker(), Uuid.randomUuid()).all().get();
        return null;
    }

    Object unregisterBroker(Command command) throws Exception {
        admin.unregisterBroker(command.broker()).all().get();
        return null;
    }

    Object producers(Command command) throws Exception {
        var partition = command.topicPartition();
        var state = admin.describeProducers(List.of(partition)).partitionResult(partition).get();
        return state.activeProducers().stream().map(ProducerState::lastSequence).toList();
    }

    Object topicById(Command command) throws Exception {
        var byName = admin.describeTopics(List.of(command.topic())).allTopicNames().get();
        var id = byName.get(command.topic()).topicId();
        var byId = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get();
        return byId.get(id).name();
    }

    Object maxTimestamp(Command command) throws Exception {
        var partition = command.topicPartition();
        var found = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).partitionResult(partition).get();
        return List.of(found.offset(), found.timestamp());
    }

    Object replicaLogDir(Command command) throws Exception {
        var replica = new TopicPartitionReplica(command.topic(), command.partition(), command.broker());
        var info = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
        return info.getCurrentReplicaLogDir();
    }

    Object moveReplica(Command command) throws Exception {
        var replica = new TopicPartitionReplica(command.topic(), command.partition(), command.broker());
        admin.alterReplicaLogDirs(Map.of(replica, command.value())).all().get();
        return null;
    }
}
