package kafka.server;

import barnabas.BrokerProcess;
import barnabas.CurrentTest;
import barnabas.Levels;
import barnabas.Store;
import barnabas.Views;
import java.io.File;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.fault.FaultHandler;

/** In place of the class of this name in Kafka's test jar, which QuorumTestHarness makes: brokers are processes of Barnabas. */
public class KRaftQuorumImplementation implements QuorumImplementation {
    private final ControllerServer formatted;
    private final FaultHandlerFactory faultHandlerFactory;
    private final File metadataDir;
    private final CompletableFuture<Map<Integer, InetSocketAddress>> voters;
    private final String clusterId;
    private final kafka.utils.Logging log;
    private final FaultHandler faultHandler;
    private final Store store = Store.create();
    private final Map<Integer, BrokerProcess> processes = new TreeMap<>();
    private final Map<Integer, KafkaConfig> configs = new HashMap<>();

    public KRaftQuorumImplementation(ControllerServer formatted, FaultHandlerFactory faultHandlerFactory, File metadataDir,
            CompletableFuture<Map<Integer, InetSocketAddress>> voters, String clusterId, kafka.utils.Logging log, FaultHandler faultHandler) {
        this.formatted = formatted;
        this.faultHandlerFactory = faultHandlerFactory;
        this.metadataDir = metadataDir;
        this.voters = voters;
        this.clusterId = clusterId;
        this.log = log;
        this.faultHandler = faultHandler;
    }

    @Override
    public KafkaBroker createBroker(KafkaConfig broker, Time time, boolean startup, scala.Option<String> threadNamePrefix) {
        int id = broker.nodeId();
        BrokerProcess first = processes.isEmpty() ? null : first();
        if (first != null && !first.joins() && first.nodeId() != id) {
            CurrentTest.asksForBrokers(CurrentTest.brokersAsked() + 1, first.nodeId());
            return new Views(first, broker, false).broker();
        }
        BrokerProcess former = processes.remove(id);
        if (former != null)
            former.close();
        BrokerProcess process = new BrokerProcess(id, new HashMap<>(broker.originals()), List.copyOf(broker.logDirs()), clusterId, Levels.of(formatted.bootstrapMetadata()), store);
        processes.put(id, process);
        configs.put(id, broker);
        CurrentTest.asksForBrokers(processes.size(), first().nodeId());
        if (!process.joins())
            CurrentTest.getsOneBroker();
        if (startup)
            process.start();
        return new Views(process, broker, true).broker();
    }

    private BrokerProcess first() {
        return processes.values().iterator().next();
    }

    @Override
    public void shutdown() {
        BrokerProcess.closeAll(processes.values());
        if (store != null)
            store.close();
    }

    public ControllerServer controllerServer() {
        return processes.isEmpty() ? formatted : new Views(first(), configs.get(first().nodeId()), false).controller();
    }

    public FaultHandlerFactory faultHandlerFactory() {
        return faultHandlerFactory;
    }

    public File metadataDir() {
        return metadataDir;
    }

    public CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture() {
        return voters;
    }

    public String clusterId() {
        return clusterId;
    }

    public kafka.utils.Logging log() {
        return log;
    }

    public FaultHandler faultHandler() {
        return faultHandler;
    }

    @Override
    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    @Override
    public boolean createBroker$default$3() {
        return true;
    }

    @Override
    public scala.Option<String> createBroker$default$4() {
        return scala.Option.empty();
    }
}
