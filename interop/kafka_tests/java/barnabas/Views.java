package barnabas;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.stream.Collectors;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.MockMakers;
import org.mockito.Mockito;

/**
 * What tests see of a broker's inside. Questions that the protocol answers are answered so, through an admin client; any
 * other call ends the test as not applicable.
 */
public final class Views {
    private final BrokerProcess process;
    private final KafkaConfig config;
    private final boolean controls;

    /** A view that does not control the process is of a broker that a test asked for and did not get. */
    public Views(BrokerProcess process, KafkaConfig config, boolean controls) {
        this.process = process;
        this.config = config;
        this.controls = controls;
    }

    private interface Answer extends Function<Object[], Object> {
    }

    private static <T> T view(Class<T> type, Map<String, Answer> answers) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().mockMaker(MockMakers.SUBCLASS).defaultAnswer(call -> {
            String name = call.getMethod().getName();
            Answer answer = answers.get(name);
            if (answer != null)
                return answer.apply(call.getArguments());
            if (List.of("toString", "hashCode", "equals").contains(name) || call.getMethod().getDeclaringClass().getSimpleName().equals("Logging"))
                return Mockito.RETURNS_DEFAULTS.answer(call);
            throw CurrentTest.notApplicable(CurrentTest.Kind.JVM, type.getSimpleName() + "." + name);
        }));
    }

    public BrokerServer broker() {
        Map<String, Answer> answers = new HashMap<>();
        answers.put("config", a -> config);
        answers.put("clusterId", a -> process.clusterId());
        answers.put("boundPort", a -> process.port(((ListenerName) a[0]).value()));
        answers.put("brokerState", a -> process.state());
        answers.put("isShutdown", a -> !process.isRunning());
        answers.put("awaitShutdown", a -> null);
        answers.put("startup", a -> {
            if (controls)
                process.start();
            return null;
        });
        answers.put("shutdown", a -> {
            if (controls)
                process.stop();
            return null;
        });
        answers.put("authorizerPlugin", a -> authorizer());
        answers.put("tokenCache", a -> Credentials.tokens(process.admin()));
        answers.put("credentialProvider", a -> Credentials.scram(process.admin()));
        answers.put("metadataCache", a -> metadataCache());
        answers.put("socketServer", a -> sockets());
        answers.put("dataPlaneRequestProcessor", a -> view(KafkaApis.class,
            Map.of("isConsumerGroupProtocolEnabled", b -> consumerProtocol(), "metadataCache", b -> metadataCache(), "authorizerPlugin", b -> authorizer())));
        answers.put("sharedServer", a -> {
            MetadataLoader loader = view(MetadataLoader.class, Map.of("lastAppliedOffset", b -> Long.MAX_VALUE));
            return view(SharedServer.class, Map.of("loader", b -> loader));
        });
        answers.put("replicaManager", a -> view(ReplicaManager.class, Map.of("onlinePartition", b -> partition((TopicPartition) b[0]))));
        answers.put("logManager", a -> logs());
        answers.put("groupCoordinator", a -> view(org.apache.kafka.coordinator.group.GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", b -> compacted())));
        answers.put("transactionCoordinator", a -> view(kafka.coordinator.transaction.TransactionCoordinator.class, Map.of("transactionStateTopicConfigs", b -> compacted())));
        return view(BrokerServer.class, answers);
    }

    public ControllerServer controller() {
        Map<String, Answer> answers = new HashMap<>();
        answers.put("config", a -> config);
        answers.put("clusterId", a -> process.clusterId());
        answers.put("authorizerPlugin", a -> authorizer());
        answers.put("socketServer", a -> sockets());
        answers.put("startup", a -> null);
        answers.put("shutdown", a -> null);
        answers.put("awaitShutdown", a -> null);
        answers.put("raftManager", a -> {
            RaftLog log = view(RaftLog.class, Map.of("endOffset", b -> new LogOffsetMetadata(1)));
            return view(kafka.raft.KafkaRaftManager.class, Map.of("raftLog", b -> log, "replicatedLog", b -> log));
        });
        answers.put("controller", a -> view(Controller.class, Map.of(
            "isActive", b -> true,
            "findAllTopicIds", b -> CompletableFuture.completedFuture(topicIds()),
            "findTopicIds", b -> CompletableFuture.completedFuture(topicIds((Collection<?>) b[1])))));
        return view(ControllerServer.class, answers);
    }

    /** What a test sends to a controller goes to the broker, which in Kafka would forward it. */
    private kafka.network.SocketServer sockets() {
        return view(kafka.network.SocketServer.class, Map.of("boundPort", a -> process.port(((ListenerName) a[0]).value())));
    }

    private KRaftMetadataCache metadataCache() {
        Map<String, Answer> answers = new HashMap<>();
        answers.put("numPartitions", a -> description((String) a[0]).map(topic -> topic.partitions().size()));
        answers.put("getLeaderAndIsr", a -> leader((String) a[0], (Integer) a[1]));
        answers.put("contains", a -> a[0] instanceof TopicPartition p ? leader(p.topic(), p.partition()).isPresent() : description((String) a[0]).isPresent());
        answers.put("hasAliveBroker", a -> isAlive((Integer) a[0]));
        answers.put("isBrokerFenced", a -> !isAlive((Integer) a[0]));
        answers.put("getTopicId", a -> description((String) a[0]).map(TopicDescription::topicId).orElse(Uuid.ZERO_UUID));
        answers.put("getTopicName", a -> topicIds().entrySet().stream().filter(each -> each.getValue().equals(a[0])).map(Map.Entry::getKey).findFirst());
        answers.put("topicNamesToIds", a -> topicIds());
        answers.put("getAllTopics", a -> topicIds().keySet());
        answers.put("getAliveBrokerNodes", a -> aliveNodes((ListenerName) a[0]));
        if (process.joins())
            answers.put("getPartitionReplicaEndpoints", a -> liveReplicas((TopicPartition) a[0]));
        return view(KRaftMetadataCache.class, answers);
    }

    /** A single broker is each that a test asks for. */
    private boolean isAlive(int id) {
        return process.joins() ? process.liveNodes().stream().anyMatch(node -> node.id() == id) : process.isRunning();
    }

    private List<Node> aliveNodes(ListenerName listener) {
        if (process.joins())
            return List.copyOf(process.liveNodes());
        return process.isRunning() ? List.of(new Node(process.nodeId(), "localhost", process.port(listener.value()))) : List.of();
    }

    private Map<Integer, Node> liveReplicas(TopicPartition which) {
        List<Integer> replicas = description(which.topic()).stream().flatMap(topic -> topic.partitions().stream())
            .filter(each -> each.partition() == which.partition()).flatMap(each -> each.replicas().stream()).map(Node::id).toList();
        return process.liveNodes().stream().filter(node -> replicas.contains(node.id())).collect(Collectors.toMap(Node::id, node -> node));
    }

    private kafka.log.LogManager logs() {
        return view(kafka.log.LogManager.class, Map.of(
            "getLog", a -> {
                TopicPartition which = (TopicPartition) a[0];
                boolean exists = process.joins() ? process.offset(which, ListOffsetsRequest.EARLIEST_TIMESTAMP) >= 0 : leader(which.topic(), which.partition()).isPresent();
                return exists ? scala.Option.apply(log(which)) : scala.Option.empty();
            },
            "getLog$default$2", a -> false,
            "liveLogDirs", a -> scala.collection.immutable.Nil$.MODULE$));
    }

    private UnifiedLog log(TopicPartition which) {
        return view(UnifiedLog.class, Map.of(
            "logStartOffset", a -> process.joins() ? process.offset(which, ListOffsetsRequest.EARLIEST_TIMESTAMP) : offset(which, OffsetSpec.earliest()),
            "logEndOffset", a -> process.joins() ? process.offset(which, ListOffsetsRequest.LATEST_TIMESTAMP) : offset(which, OffsetSpec.latest()),
            "highWatermark", a -> highWatermark(which)));
    }

    private long highWatermark(TopicPartition which) {
        if (leader(which.topic(), which.partition()).filter(this::leads).isEmpty())
            throw CurrentTest.notApplicable(CurrentTest.Kind.JVM, "the high watermark of a follower");
        return offset(which, OffsetSpec.latest());
    }

    private long offset(TopicPartition which, OffsetSpec spec) {
        try {
            return process.admin().listOffsets(Map.of(which, spec)).partitionResult(which).get().offset();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    private scala.Option<kafka.cluster.Partition> partition(TopicPartition which) {
        Optional<LeaderAndIsr> leader = leader(which.topic(), which.partition());
        if (leader.isEmpty())
            return scala.Option.empty();
        return scala.Option.apply(view(kafka.cluster.Partition.class, Map.of(
            "leaderIdIfLocal", a -> leads(leader.get()) ? scala.Option.apply(leader.get().leader()) : scala.Option.empty(),
            "leaderLogIfLocal", a -> leads(leader.get()) ? scala.Option.apply(log(which)) : scala.Option.empty())));
    }

    private boolean leads(LeaderAndIsr leader) {
        return !process.joins() || leader.leader() == process.nodeId();
    }

    private scala.Option<Plugin<Authorizer>> authorizer() {
        if (process.settings.properties.getOrDefault("authorizer.class.name", "").isEmpty())
            return scala.Option.empty();
        return scala.Option.apply(Plugin.wrapInstance(new RemoteAuthorizer(process), null, "authorizer.class.name"));
    }

    private boolean consumerProtocol() {
        String protocols = process.settings.properties.getOrDefault("group.coordinator.rebalance.protocols", "consumer");
        return Arrays.asList(protocols.split(",")).contains("consumer") && process.feature("group.version", (short) 1) != 0;
    }

    private static Properties compacted() {
        Properties configs = new Properties();
        configs.putAll(Map.of("cleanup.policy", "compact", "compression.type", "producer", "segment.bytes", "104857600"));
        return configs;
    }

    private Optional<TopicDescription> description(String topic) {
        if (process.joins())
            return process.metadata(List.of(topic)).topicMetadata().stream().filter(each -> each.error() == Errors.NONE).findFirst().map(this::description);
        try {
            return Optional.of(process.admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic));
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException)
                return Optional.empty();
            throw new IllegalStateException(error.getCause());
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private TopicDescription description(MetadataResponse.TopicMetadata topic) {
        List<TopicPartitionInfo> partitions = topic.partitionMetadata().stream().map(each -> new TopicPartitionInfo(each.partition(),
            each.leaderId.map(Views::node).orElse(null), nodes(each.replicaIds), nodes(each.inSyncReplicaIds))).toList();
        return new TopicDescription(topic.topic(), topic.isInternal(), partitions, Set.of(), topic.topicId());
    }

    private static List<Node> nodes(List<Integer> ids) {
        return ids.stream().map(Views::node).toList();
    }

    private static Node node(int id) {
        return new Node(id, "", -1);
    }

    private Optional<LeaderAndIsr> leader(String topic, int partition) {
        return description(topic).flatMap(each -> each.partitions().stream()
            .filter(p -> p.partition() == partition && (p.leader() != null || process.joins()))
            .map(p -> new LeaderAndIsr(p.leader() == null ? LeaderAndIsr.NO_LEADER : p.leader().id(), p.isr().stream().map(Node::id).toList()))
            .findFirst());
    }

    private Map<String, Uuid> topicIds() {
        try {
            Map<String, Uuid> ids = new HashMap<>();
            process.admin().listTopics(new ListTopicsOptions().listInternal(true)).listings().get().forEach(each -> ids.put(each.name(), each.topicId()));
            return ids;
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    private Map<String, ResultOrError<Uuid>> topicIds(Collection<?> names) {
        Map<String, Uuid> ids = topicIds();
        Map<String, ResultOrError<Uuid>> results = new HashMap<>();
        for (Object name : names)
            results.put((String) name, ids.containsKey(name) ? ResultOrError.of(ids.get(name)) : ResultOrError.of(new ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)));
        return results;
    }
}
