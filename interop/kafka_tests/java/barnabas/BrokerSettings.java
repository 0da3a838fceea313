package barnabas;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.types.Password;

/** The properties that a test gives a broker of Kafka's, as the settings of one Barnabas process. */
final class BrokerSettings {
    static final String USER = "harness";
    private static final String HIDDEN = "HARNESS";
    /** Said in another way, or of a KRaft node alone. */
    private static final Set<String> LEFT_OUT = Set.of("node.id", "broker.id", "log.dir", "log.dirs", "listeners", "process.roles",
        "controller.listener.names", "metadata.log.dir", "principal.builder.class", "security.inter.broker.protocol");
    /** Classes that a test brings along and a broker of Kafka's loads. */
    private static final List<String> PLUGINS = List.of("create.topic.policy.class.name", "alter.config.policy.class.name", "client.quota.callback.class",
        "replica.selector.class", "connection.failed.authentication.delay.class");
    /** Barnabas knows this one by its name. */
    private static final String SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
    /** Bounded by the number of brokers, where a test gets one in place of several. */
    private static final List<String> REPLICAS = List.of("offsets.topic.replication.factor", "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr", "default.replication.factor", "min.insync.replicas");

    final Map<String, String> properties = new TreeMap<>();
    final List<String> logDirs;
    /** Where clients connect, by listener. */
    final Map<String, Integer> ports = new LinkedHashMap<>();
    /** Where Barnabas listens behind a login proxy, by listener. */
    final Map<String, Integer> proxied = new LinkedHashMap<>();
    final int nodeId;
    /** A listener of the harness's own where clients must log in, need certificates or need permissions; else 0. */
    final int hiddenPort;
    /** Where the metrics are beside that listener; else 0. */
    final int metricsPort;
    /** Whether the broker is one of several over a store; brokers do not log in to each other, so only where clients need not either. */
    final boolean joins;
    private final Map<String, String> protocols = new LinkedHashMap<>();
    private final List<String> urls = new ArrayList<>();

    /** The store is null for a single broker. */
    BrokerSettings(int nodeId, Map<String, ?> given, List<String> logDirs, Path store) {
        this.nodeId = nodeId;
        this.logDirs = logDirs;
        given.forEach((key, value) -> {
            if (value != null)
                properties.put(key, text(value));
        });
        refusePlugins();
        readListeners();
        boolean authorizes = !properties.getOrDefault("authorizer.class.name", "").isEmpty();
        boolean secured = protocols.values().stream().anyMatch(protocol -> !protocol.equals("PLAINTEXT"));
        hiddenPort = authorizes || secured || !proxied.isEmpty() ? freePort() : 0;
        metricsPort = hiddenPort == 0 ? 0 : freePort();
        if (hiddenPort != 0)
            addHiddenListener();
        properties.putIfAbsent("barnabas.audit.enable", System.getProperty("barnabas.audit", "false"));
        joins = store != null && hiddenPort == 0;
        if (joins)
            properties.put("barnabas.store", "sqlite:" + store);
        else
            for (String key : REPLICAS)
                properties.computeIfPresent(key, (k, v) -> v.matches("[2-9]|\\d\\d+") ? "1" : v);
        protocols.forEach((listener, protocol) -> {
            if (protocol.startsWith("SASL") && !proxied.containsKey(listener))
                Logins.translate(properties, listener);
        });
    }

    private static String text(Object value) {
        if (value instanceof Password password)
            return password.value();
        if (value instanceof Collection<?> list)
            return list.stream().map(String::valueOf).collect(Collectors.joining(","));
        return value instanceof Class<?> type ? type.getName() : String.valueOf(value);
    }

    /** The class that decides who the clients of a listener are; empty where it is Kafka's own. */
    String principalBuilder(String listener) {
        String key = "principal.builder.class";
        String name = properties.getOrDefault(Logins.prefix(listener) + key, properties.getOrDefault(key, ""));
        return name.startsWith("org.apache.kafka.common.security.") ? "" : name;
    }

    private void refusePlugins() {
        if (properties.getOrDefault("remote.log.storage.system.enable", "false").equals("true"))
            throw CurrentTest.notApplicable(CurrentTest.Kind.TIERED, "remote.log.storage.system.enable");
        for (String key : PLUGINS)
            if (!Set.of("", SELECTOR).contains(properties.getOrDefault(key, "")))
                throw CurrentTest.notApplicable(CurrentTest.Kind.PLUGIN, key);
        Logins.refusePlugins(properties);
    }

    private void readListeners() {
        Map<String, String> map = new LinkedHashMap<>();
        for (String pair : properties.getOrDefault("listener.security.protocol.map", "").split(","))
            if (pair.contains(":"))
                map.put(pair.split(":")[0].trim().toUpperCase(Locale.ROOT), pair.split(":")[1].trim());
        Set<String> controllers = Set.of(properties.getOrDefault("controller.listener.names", "CONTROLLER").split(","));
        for (String url : properties.getOrDefault("listeners", "PLAINTEXT://localhost:0").split(",")) {
            String name = url.substring(0, url.indexOf("://")).trim();
            if (!controllers.contains(name))
                readListener(name, url.trim(), map.getOrDefault(name.toUpperCase(Locale.ROOT), name));
        }
        properties.put("listener.security.protocol.map", protocols.entrySet().stream().map(e -> e.getKey() + ":" + e.getValue()).collect(Collectors.joining(",")));
        if (!proxied.isEmpty() || properties.getOrDefault("advertised.listeners", "").matches(".*:0(,.*)?"))
            properties.put("advertised.listeners", ports.entrySet().stream().map(e -> e.getKey() + "://localhost:" + e.getValue()).collect(Collectors.joining(",")));
    }

    private void readListener(String name, String url, String protocol) {
        int colon = url.lastIndexOf(':');
        int port = Integer.parseInt(url.substring(colon + 1).trim());
        String host = url.substring(url.indexOf("://") + 3, colon);
        if (port == 0)
            port = freePort();
        ports.put(name.toUpperCase(Locale.ROOT), port);
        String builder = principalBuilder(name);
        if (!builder.isEmpty() && !protocol.equals("PLAINTEXT"))
            Logins.mapPrincipals(properties, name, builder);
        else if (!builder.isEmpty()) {
            port = freePort();
            proxied.put(name.toUpperCase(Locale.ROOT), port);
            protocol = "SASL_PLAINTEXT";
            properties.put(Logins.prefix(name) + "sasl.enabled.mechanisms", "PLAIN");
            properties.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        }
        protocols.put(name.toUpperCase(Locale.ROOT), protocol);
        urls.add(name + "://" + (host.isEmpty() ? "localhost" : host) + ":" + port);
    }

    private void addHiddenListener() {
        urls.add(HIDDEN + "://127.0.0.1:" + hiddenPort);
        properties.merge("listener.security.protocol.map", HIDDEN + ":SASL_PLAINTEXT", (map, own) -> map + "," + own);
        properties.computeIfPresent("advertised.listeners", (k, v) -> v + "," + HIDDEN + "://127.0.0.1:" + hiddenPort);
        properties.put("listener.name.harness.sasl.enabled.mechanisms", "PLAIN");
        properties.put("listener.name.harness.plain.sasl.jaas.config", Logins.PLAIN_MODULE + " required user_" + USER + "=\"" + USER + "\";");
        properties.merge("super.users", "User:" + USER, (users, own) -> users.isEmpty() ? own : users + ";" + own);
        properties.put("barnabas.metrics.listener", "127.0.0.1:" + metricsPort);
        properties.put("barnabas.console.enable", "false");
    }

    /** The arguments of `barnabas serve`. */
    List<String> arguments() {
        Map<String, String> all = new TreeMap<>(properties);
        all.keySet().removeIf(key -> LEFT_OUT.contains(key) || key.endsWith(".principal.builder.class") || key.startsWith("controller.quorum.") || key.startsWith("server.max.startup"));
        all.put("node.id", String.valueOf(nodeId));
        all.put("log.dirs", String.join(",", logDirs));
        all.put("listeners", String.join(",", urls));
        List<String> arguments = new ArrayList<>();
        all.forEach((key, value) -> arguments.addAll(List.of("--set", key + "=" + value)));
        return arguments;
    }

    static int freePort() {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
