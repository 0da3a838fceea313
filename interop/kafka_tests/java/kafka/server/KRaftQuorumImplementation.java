package kafka.server;

import barnabas.BrokerProcess;
import barnabas.CurrentTest;
import barnabas.Levels;
import barnabas.Views;
import java.io.File;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.fault.FaultHandler;

/** In place of the class of this name in Kafka's test jar, which QuorumTestHarness makes: brokers are a Barnabas process. */
public class KRaftQuorumImplementation implements QuorumImplementation {
    private final ControllerServer formatted;
    private final FaultHandlerFactory faultHandlerFactory;
    private final File metadataDir;
    private final CompletableFuture<Map<Integer, InetSocketAddress>> voters;
    private final String clusterId;
    private final kafka.utils.Logging log;
    private final FaultHandler faultHandler;
    private BrokerProcess process;
    private KafkaConfig config;

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
        if (process != null && process.nodeId() != broker.nodeId()) {
            CurrentTest.asksForBrokers(CurrentTest.brokersAsked() + 1, process.nodeId());
            return new Views(process, broker, false).broker();
        }
        if (process != null)
            process.close();
        CurrentTest.asksForBrokers(1, broker.nodeId());
        config = broker;
        process = new BrokerProcess(broker.nodeId(), new HashMap<>(broker.originals()), List.copyOf(broker.logDirs()), clusterId, Levels.of(formatted.bootstrapMetadata()));
        if (startup)
            process.start();
        return new Views(process, broker, true).broker();
    }

    @Override
    public void shutdown() {
        if (process != null)
            process.close();
    }

    public ControllerServer controllerServer() {
        return process == null ? formatted : new Views(process, config, false).controller();
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
