package barnabas;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.SupportedVersionRange;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.server.IntegrationTestUtils;

/** One `barnabas serve` where a test expects a broker of Kafka's; it can be stopped and started again on its data. */
public final class BrokerProcess implements AutoCloseable {
    private static final String PROGRAM = System.getProperty("barnabas.program", "barnabas");
    private static final Path LOGS = Path.of(System.getProperty("barnabas.logs", System.getProperty("java.io.tmpdir")));
    private static final long START_MS = 60_000;
    private static final long STOP_S = 20;
    private static final Pattern SCRAM_USER = Pattern.compile("(.+)=\\[name=(.+),password=(.+)\\]");
    private static final Map<Process, BrokerProcess> RUNNING = new ConcurrentHashMap<>();
    private static final AtomicInteger COUNT = new AtomicInteger();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> RUNNING.keySet().forEach(Process::destroyForcibly)));
    }

    final BrokerSettings settings;
    private final String clusterId;
    private final Map<String, Short> features;
    private final List<LoginProxy> proxies = new ArrayList<>();
    private Process process;
    private boolean hasRun;
    private Admin admin;

    /** The features are the levels that a test formats its storage with; the store is that of several brokers, or null. */
    public BrokerProcess(int nodeId, Map<String, ?> properties, List<String> logDirs, String clusterId, Map<String, Short> features, Store store) {
        settings = new BrokerSettings(nodeId, properties, logDirs, store == null ? null : store.path());
        this.clusterId = clusterId;
        this.features = new HashMap<>(features);
    }

    public int nodeId() {
        return settings.nodeId;
    }

    static Collection<BrokerProcess> running() {
        return RUNNING.values();
    }

    /** Whether this is one of several brokers; else a test gets this one in place of all. */
    public boolean joins() {
        return settings.joins;
    }

    public String clusterId() {
        return clusterId;
    }

    /** The port of a listener, whatever the case of its name. */
    public int port(String listener) {
        return settings.ports.getOrDefault(listener.toUpperCase(java.util.Locale.ROOT), settings.ports.values().iterator().next());
    }

    short feature(String name, short otherwise) {
        return features.getOrDefault(name, otherwise);
    }

    public synchronized boolean isRunning() {
        return process != null && process.isAlive();
    }

    /** Kafka's broker reports that it is shutting down also when it has stopped. */
    public synchronized BrokerState state() {
        if (isRunning())
            return BrokerState.RUNNING;
        return hasRun ? BrokerState.SHUTTING_DOWN : BrokerState.NOT_RUNNING;
    }

    /** Start the broker and return when it listens. */
    public synchronized void start() {
        if (process != null)
            return;
        try {
            for (String directory : settings.logDirs)
                format(Path.of(directory));
            Files.createDirectories(LOGS);
            Path log = LOGS.resolve(ProcessHandle.current().pid() + "-" + COUNT.incrementAndGet() + ".log");
            List<String> command = new ArrayList<>(List.of(PROGRAM, "serve"));
            command.addAll(settings.arguments());
            command.addAll(startProxies());
            Files.writeString(log, String.join(" ", command) + "\n");
            CurrentTest.log(log);
            process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
            hasRun = true;
            RUNNING.put(process, this);
            for (String listener : settings.ports.keySet())
                awaitPort(settings.proxied.getOrDefault(listener, settings.ports.get(listener)), log);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        setFeatures();
        addScramUsers();
    }

    /** Give a new directory the ids that a test expects. */
    private void format(Path directory) throws IOException {
        Files.createDirectories(directory);
        Path meta = directory.resolve("meta.properties");
        if (clusterId != null && !Files.exists(meta))
            Files.writeString(meta, "version=1\ncluster.id=" + clusterId + "\nnode.id=" + settings.nodeId + "\ndirectory.id=" + Uuid.randomUuid() + "\n");
    }

    private List<String> startProxies() throws IOException {
        if (settings.proxied.isEmpty())
            return List.of();
        Path file = Files.createTempFile("users-", ".properties");
        file.toFile().deleteOnExit();
        LoginProxy.Users users = new LoginProxy.Users(file);
        for (Map.Entry<String, Integer> each : settings.proxied.entrySet())
            proxies.add(new LoginProxy(each.getKey(), settings.ports.get(each.getKey()), each.getValue(), principals(each.getKey()), users));
        return List.of("--set", "barnabas.sasl.plain.users.file=" + file);
    }

    private KafkaPrincipalBuilder principals(String listener) {
        try {
            return Utils.newInstance(settings.principalBuilder(listener), KafkaPrincipalBuilder.class);
        } catch (ClassNotFoundException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private void awaitPort(int port, Path log) throws IOException {
        long end = System.currentTimeMillis() + START_MS;
        while (true) {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress("localhost", port), 1000);
                return;
            } catch (IOException notYet) {
                if (!process.isAlive() || System.currentTimeMillis() > end) {
                    stop();
                    throw new IllegalStateException("Barnabas did not start: " + Files.readString(log));
                }
            }
            Utils.sleep(10);
        }
    }

    /** Bring the features to the levels that the test formats with, where Kafka's newest are higher. */
    private void setFeatures() {
        Map<String, Short> wanted = Levels.belowNewest(features);
        if (wanted.isEmpty() || (settings.hiddenPort == 0 && hasFeatures(wanted)))
            return;
        try {
            FeatureMetadata now = admin().describeFeatures().featureMetadata().get();
            for (Map.Entry<String, Short> each : wanted.entrySet())
                setFeature(each.getKey(), each.getValue(), now);
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("features: " + error, error);
        }
    }

    /** Asks the broker on its own port: a test may advertise an address that does not exist. */
    private boolean hasFeatures(Map<String, Short> wanted) {
        ApiVersionsResponse response = ask(new ApiVersionsRequest.Builder().build());
        Map<String, Short> levels = new HashMap<>();
        response.data().finalizedFeatures().forEach(each -> levels.put(each.name(), each.maxVersionLevel()));
        response.data().supportedFeatures().forEach(each -> levels.putIfAbsent(each.name(), (short) 0));
        return wanted.entrySet().stream().allMatch(each -> levels.getOrDefault(each.getKey(), each.getValue()).equals(each.getValue()));
    }

    private void setFeature(String name, short level, FeatureMetadata now) throws InterruptedException {
        SupportedVersionRange range = now.supportedFeatures().get(name);
        FinalizedVersionRange current = now.finalizedFeatures().get(name);
        short has = current == null ? 0 : current.maxVersionLevel();
        if (range == null || has == level)
            return;
        FeatureUpdate.UpgradeType way = level < has ? FeatureUpdate.UpgradeType.UNSAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE;
        try {
            admin().updateFeatures(Map.of(name, new FeatureUpdate(level, way)), new UpdateFeaturesOptions()).all().get();
        } catch (ExecutionException refused) {
            throw CurrentTest.notApplicable(CurrentTest.Kind.METADATA_VERSION, name + "=" + level + ": " + refused.getCause());
        }
    }

    private void addScramUsers() {
        List<UserScramCredentialAlteration> users = CurrentTest.scramUsers().stream().map(BrokerProcess::scramUser).toList();
        try {
            if (!users.isEmpty())
                admin().alterUserScramCredentials(users).all().get();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("SCRAM users: " + error, error);
        }
    }

    /** MECHANISM=[name=NAME,password=PASSWORD] */
    private static UserScramCredentialAlteration scramUser(String text) {
        Matcher parts = SCRAM_USER.matcher(text);
        if (!parts.matches())
            throw new IllegalArgumentException(text);
        ScramMechanism mechanism = ScramMechanism.fromMechanismName(parts.group(1));
        return new UserScramCredentialUpsertion(parts.group(2), new ScramCredentialInfo(mechanism, 4096), parts.group(3));
    }

    /** The brokers that this one knows to be alive. */
    public Collection<Node> liveNodes() {
        return isRunning() ? metadata(List.of()).brokers() : List.of();
    }

    /** What this one of several brokers knows; an admin client would ask any of them. */
    MetadataResponse metadata(List<String> topics) {
        return ask(new MetadataRequest.Builder(topics, false).build());
    }

    /** An offset of this broker's own replica, leader or not; -1 without a replica. */
    long offset(TopicPartition which, long timestamp) {
        ListOffsetsTopic topic = new ListOffsetsTopic().setName(which.topic())
            .setPartitions(List.of(new ListOffsetsPartition().setPartitionIndex(which.partition()).setTimestamp(timestamp)));
        ListOffsetsResponse response = ask(ListOffsetsRequest.Builder.forReplica((short) 1, ListOffsetsRequest.DEBUGGING_REPLICA_ID).setTargetTimes(List.of(topic)).build());
        return response.topics().get(0).partitions().get(0).offset();
    }

    private <T extends AbstractResponse> T ask(AbstractRequest request) {
        try {
            return IntegrationTestUtils.connectAndReceive(request, settings.ports.values().iterator().next());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** An admin client that may do everything. */
    synchronized Admin admin() {
        if (admin == null) {
            Map<String, Object> configs = new HashMap<>();
            boolean hidden = settings.hiddenPort != 0;
            configs.put("bootstrap.servers", "localhost:" + (hidden ? settings.hiddenPort : settings.ports.values().iterator().next()));
            configs.put("client.id", BrokerSettings.USER);
            if (hidden) {
                configs.put("security.protocol", "SASL_PLAINTEXT");
                configs.put("sasl.mechanism", "PLAIN");
                configs.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + BrokerSettings.USER
                    + "\" password=\"" + BrokerSettings.USER + "\";");
            }
            admin = Admin.create(configs);
        }
        return admin;
    }

    /** Stop the broker as SIGTERM does. */
    public synchronized void stop() {
        if (process == null)
            return;
        try {
            process.destroy();
            if (!process.waitFor(STOP_S, TimeUnit.SECONDS))
                process.destroyForcibly().waitFor();
            for (LoginProxy each : proxies)
                each.close();
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        proxies.clear();
        RUNNING.remove(process);
        process = null;
    }

    /** Stop brokers at the same time. */
    public static void closeAll(Collection<BrokerProcess> processes) {
        for (BrokerProcess each : processes)
            if (each.isRunning())
                each.process.destroy();
        processes.forEach(BrokerProcess::close);
    }

    @Override
    public synchronized void close() {
        if (admin != null)
            admin.close(Duration.ZERO);
        admin = null;
        stop();
    }
}
