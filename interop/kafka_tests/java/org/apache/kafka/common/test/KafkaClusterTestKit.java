package org.apache.kafka.common.test;

import barnabas.BrokerProcess;
import barnabas.CurrentTest;
import barnabas.Levels;
import barnabas.Store;
import barnabas.Views;
import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** In place of the class of this name in kafka-test-common-runtime: brokers are processes of Barnabas. */
public class KafkaClusterTestKit implements AutoCloseable {
    private final TestKitNodes nodes;
    private final boolean deleteOnClose;
    private final Store store;
    private final List<BrokerProcess> processes = new ArrayList<>();
    private final Map<Integer, BrokerServer> brokers = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    private final MockFaultHandler fatal = new MockFaultHandler("fatal");
    private final MockFaultHandler nonFatal = new MockFaultHandler("nonFatal");

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, Object> configProps, boolean deleteOnClose) {
        this.nodes = nodes;
        this.deleteOnClose = deleteOnClose;
        store = nodes.brokerNodes().size() > 1 ? Store.create() : null;
        for (TestKitNode node : nodes.brokerNodes().values()) {
            addBroker(node, properties(node, configProps));
            if (!processes.get(0).joins()) {
                CurrentTest.getsOneBroker();
                break;
            }
        }
    }

    private void addBroker(TestKitNode node, Map<String, Object> properties) {
        BrokerProcess process = new BrokerProcess(node.id(), properties, List.copyOf(new TreeSet<>(node.logDataDirectories())), nodes.clusterId(), Levels.of(nodes.bootstrapMetadata()), store);
        processes.add(process);
        Views views = new Views(process, config(properties), true);
        brokers.put(node.id(), views.broker());
        if (processes.size() == 1)
            nodes.controllerNodes().keySet().forEach(id -> controllers.put(id, views.controller()));
    }

    private Map<String, Object> properties(TestKitNode node, Map<String, Object> configProps) {
        String listener = nodes.brokerListenerName().value();
        String control = nodes.controllerListenerName().value();
        Map<String, Object> properties = new HashMap<>(configProps);
        properties.put("process.roles", "broker");
        properties.put("node.id", String.valueOf(node.id()));
        properties.put("log.dirs", String.join(",", node.logDataDirectories()));
        properties.put("controller.quorum.voters", "9999@localhost:1");
        properties.putIfAbsent("listener.security.protocol.map", listener + ":" + nodes.brokerListenerProtocol() + "," + control + ":" + nodes.controllerListenerProtocol());
        properties.putIfAbsent("listeners", listener + "://localhost:0");
        properties.putIfAbsent("inter.broker.listener.name", listener);
        properties.putIfAbsent("controller.listener.names", control);
        properties.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        properties.putIfAbsent("unstable.feature.versions.enable", "true");
        properties.putIfAbsent("unstable.api.versions.enable", "true");
        if (nodes.brokerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT)
            secure(properties, "listener.name." + listener.toLowerCase(Locale.ROOT));
        properties.putAll(node.propertyOverrides());
        return properties;
    }

    private static void secure(Map<String, Object> properties, String prefix) {
        properties.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        properties.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        properties.putIfAbsent("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        properties.putIfAbsent("allow.everyone.if.no.acl.found", "false");
        properties.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        properties.putIfAbsent(prefix + ".plain.sasl.jaas.config", String.format(
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%1$s\" password=\"%2$s\" user_%1$s=\"%2$s\" user_%3$s=\"%4$s\";",
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD, JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
    }

    /** A broker's own config names no listener of controllers. */
    private KafkaConfig config(Map<String, Object> properties) {
        Map<String, Object> own = new HashMap<>(properties);
        String control = nodes.controllerListenerName().value() + "://";
        own.put("listeners", String.join(",", java.util.Arrays.stream(String.valueOf(properties.get("listeners")).split(",")).filter(url -> !url.startsWith(control)).toList()));
        return new KafkaConfig(own, false);
    }

    public void format() {
    }

    public void startup() {
        processes.forEach(BrokerProcess::start);
    }

    /** Return when each broker knows all of them. */
    public void waitForReadyBrokers() {
        for (BrokerProcess each : processes)
            while (processes.size() > 1 && each.liveNodes().size() < processes.size())
                Utils.sleep(10);
    }

    public Admin admin() {
        return admin(Map.of());
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        Map<String, Object> all = new HashMap<>(configs);
        all.putIfAbsent("bootstrap.servers", usingBootstrapControllers ? bootstrapControllers() : bootstrapServers());
        return Admin.create(all);
    }

    public String bootstrapServers() {
        return processes.stream().map(each -> "localhost:" + each.port(nodes.brokerListenerName().value())).collect(Collectors.joining(","));
    }

    public String bootstrapControllers() {
        throw CurrentTest.notApplicable(CurrentTest.Kind.CONTROLLER, "bootstrapControllers");
    }

    public Map<Integer, ControllerServer> controllers() {
        return controllers;
    }

    public Controller waitForActiveController() {
        return controllers.values().iterator().next().controller();
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        throw CurrentTest.notApplicable(CurrentTest.Kind.JVM, "KafkaClusterTestKit.raftManagers");
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatal;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatal;
    }

    @Override
    public void close() throws Exception {
        BrokerProcess.closeAll(processes);
        if (store != null)
            store.close();
        if (deleteOnClose)
            Utils.delete(new File(nodes.baseDirectory()));
    }

    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, Object> configProps = new HashMap<>();
        private boolean deleteOnClose = true;

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            configProps.put(key, value);
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> initialVoterSet) {
            return this;
        }

        public Builder setDeleteOnClose(boolean deleteOnClose) {
            this.deleteOnClose = deleteOnClose;
            return this;
        }

        public KafkaClusterTestKit build() {
            if (nodes.brokerNodes().isEmpty())
                throw CurrentTest.notApplicable(CurrentTest.Kind.CONTROLLER, "a cluster without brokers");
            CurrentTest.asksForBrokers(nodes.brokerNodes().size(), nodes.brokerNodes().firstKey());
            return new KafkaClusterTestKit(nodes, configProps, deleteOnClose);
        }
    }
}
