package barnabas.interop;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;

/** Apache Kafka's Java clients as a JSON-lines program: {@code Main HOST:PORT}. */
public final class Main {
    private interface Operation {
        Object run(Command command) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper()
            .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
            .configure(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES, false);

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        var connection = new Connection(arguments[0]);
        try (var admin = Admin.create(connection.configs(Map.of()))) {
            var operations = operations(
                    new Administration(admin), new Cluster(admin), new Whole(admin), new Data(connection),
                    new Membership(connection), new Coordinators(admin, connection));
            var input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                System.out.println(JSON.writeValueAsString(answer(operations, line)));
            }
        }
    }

    private static Map<String, Operation> operations(
            Administration administration, Cluster cluster, Whole whole, Data data, Membership membership,
            Coordinators coordinators) {
        return Map.ofEntries(
                Map.entry("metadata", administration::metadata),
                Map.entry("create_topic", administration::createTopic),
                Map.entry("delete_topic", administration::deleteTopic),
                Map.entry("create_partitions", administration::createPartitions),
                Map.entry("topic_configs", administration::topicConfigs),
                Map.entry("broker_configs", administration::brokerConfigs),
                Map.entry("offsets", administration::offsets),
                Map.entry("offset_at", administration::offsetAt),
                Map.entry("delete_records", administration::deleteRecords),
                Map.entry("alter_topic_config", cluster::alterTopicConfig),
                Map.entry("create_acl", cluster::createAcl),
                Map.entry("acls", cluster::acls),
                Map.entry("delete_acls", cluster::deleteAcls),
                Map.entry("alter_quota", cluster::alterQuota),
                Map.entry("quotas", cluster::quotas),
                Map.entry("alter_scram", cluster::alterScram),
                Map.entry("scram", cluster::scram),
                Map.entry("delete_scram", cluster::deleteScram),
                Map.entry("elect_leader", cluster::electLeader),
                Map.entry("reassign", cluster::reassign),
                Map.entry("reassignments", cluster::reassignments),
                Map.entry("log_dirs", cluster::logDirs),
                Map.entry("config_resources", cluster::configResources),
                Map.entry("cluster", whole::cluster),
                Map.entry("features", whole::features),
                Map.entry("try_feature", whole::tryFeature),
                Map.entry("quorum", whole::quorum),
                Map.entry("add_voter", whole::addVoter),
                Map.entry("remove_voter", whole::removeVoter),
                Map.entry("unregister_broker", whole::unregisterBroker),
                Map.entry("producers", whole::producers),
                Map.entry("topic_by_id", whole::topicById),
                Map.entry("max_timestamp", whole::maxTimestamp),
                Map.entry("replica_log_dir", whole::replicaLogDir),
                Map.entry("move_replica", whole::moveReplica),
                Map.entry("transact", data::transact),
                Map.entry("produce", data::produce),
                Map.entry("consume", data::consume),
                Map.entry("join_group", membership::join),
                Map.entry("membership", membership::tell),
                Map.entry("leave_group", membership::leave),
                Map.entry("groups", coordinators::groups),
                Map.entry("consumer_group", coordinators::consumerGroup),
                Map.entry("classic_group", coordinators::classicGroup),
                Map.entry("remove_members", coordinators::removeMembers),
                Map.entry("delete_group", coordinators::deleteGroup),
                Map.entry("committed", coordinators::committed),
                Map.entry("commit", coordinators::commit),
                Map.entry("forget", coordinators::forget),
                Map.entry("begin_transaction", coordinators::beginTransaction),
                Map.entry("end_transaction", coordinators::endTransaction),
                Map.entry("transactions", coordinators::transactions),
                Map.entry("transaction", coordinators::transaction),
                Map.entry("fence", coordinators::fence),
                Map.entry("terminate", coordinators::terminate),
                Map.entry("abort", coordinators::abort));
    }

    private static Map<String, Object> answer(Map<String, Operation> operations, String line) throws Exception {
        var operation = operations.get(JSON.readTree(line).get("do").asText());
        try {
            return Collections.singletonMap("ok", operation.run(JSON.readValue(line, Command.class)));
        } catch (Exception thrown) {
            var error = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            return Map.of("error", error.getClass().getSimpleName(), "message", String.valueOf(error.getMessage()));
        }
    }
}
