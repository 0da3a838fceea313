package barnabas;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;

/** Who clients are: what a test says in classes and in the JVM's login configuration, as settings of Barnabas. */
final class Logins {
    static final String PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule";
    private static final Set<String> MECHANISMS = Set.of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER");
    private static final String HANDLER = "sasl.server.callback.handler.class";
    private static final String JWKS = "sasl.oauthbearer.jwks.endpoint.url";
    /** Barnabas does what this class does without being told. */
    private static final String VALIDATOR = OAuthBearerValidatorCallbackHandler.class.getName();
    /** This one tells some tests, listed in known.toml, what it is asked for; to the others it is Kafka's own. */
    private static final String WATCHED_AUTHORIZER = "kafka.api.SslAdminIntegrationTest$TestableStandardAuthorizer";
    /** What principal builders of tests make of the names in certificates, as ssl.principal.mapping.rules. */
    private static final Map<String, String> RULES = Map.of(
        "kafka.api.SslEndToEndAuthorizationTest$TestPrincipalBuilder",
        "RULE:^O=A server,CN=.*$/server/,RULE:^O=A .*,CN=super-user$/server/,DEFAULT",
        "kafka.api.SslAdminIntegrationTest$TestPrincipalBuilder",
        "RULE:^O=A server,CN=.*$/server/,RULE:^O=A .*,CN=super-user$/server/,RULE:^O=A .*,CN=client$/client/,RULE:^.*$/ANONYMOUS/");

    private Logins() {
    }

    static void refusePlugins(Map<String, String> properties) {
        properties.forEach((key, value) -> {
            if (key.endsWith(HANDLER) && !Set.of("", VALIDATOR).contains(value))
                throw CurrentTest.notApplicable(CurrentTest.Kind.PLUGIN, key);
        });
        properties.keySet().removeIf(key -> key.endsWith(HANDLER));
        properties.replace("authorizer.class.name", WATCHED_AUTHORIZER, StandardAuthorizer.class.getName());
        if (!Set.of("", StandardAuthorizer.class.getName()).contains(properties.getOrDefault("authorizer.class.name", "")))
            throw CurrentTest.notApplicable(CurrentTest.Kind.PLUGIN, "authorizer.class.name");
    }

    /** Replace a class that decides who the clients of a listener are by rules. */
    static void mapPrincipals(Map<String, String> properties, String listener, String builder) {
        if (!RULES.containsKey(builder))
            throw CurrentTest.notApplicable(CurrentTest.Kind.PLUGIN, "principal.builder.class");
        properties.put(prefix(listener) + "ssl.principal.mapping.rules", RULES.get(builder));
    }

    static String prefix(String listener) {
        return "listener.name." + listener.toLowerCase(Locale.ROOT) + ".";
    }

    /** Kafka reads users of PLAIN from the JVM's login configuration where no property names them, and takes unsigned tokens. */
    static void translate(Map<String, String> properties, String listener) {
        String prefix = prefix(listener);
        String mechanisms = properties.getOrDefault(prefix + "sasl.enabled.mechanisms", properties.getOrDefault("sasl.enabled.mechanisms", "GSSAPI"));
        for (String mechanism : mechanisms.split("\\s*,\\s*")) {
            if (!MECHANISMS.contains(mechanism))
                throw CurrentTest.notApplicable(CurrentTest.Kind.SASL, mechanism);
            if (mechanism.equals("PLAIN"))
                for (String section : List.of(listener.toLowerCase(Locale.ROOT) + ".KafkaServer", "KafkaServer"))
                    plainUsers(section).forEach(entry -> properties.putIfAbsent(prefix + "plain.sasl.jaas.config", line(entry)));
            if (mechanism.equals("OAUTHBEARER") && properties.keySet().stream().noneMatch(key -> key.endsWith(JWKS)))
                properties.put("barnabas.sasl.oauthbearer.unsecured", "true");
        }
    }

    private static List<AppConfigurationEntry> plainUsers(String section) {
        try {
            AppConfigurationEntry[] entries = Configuration.getConfiguration().getAppConfigurationEntry(section);
            return entries == null ? List.of() : Arrays.stream(entries).filter(e -> e.getLoginModuleName().equals(PLAIN_MODULE)).toList();
        } catch (SecurityException noFile) {
            return List.of();
        }
    }

    private static String line(AppConfigurationEntry entry) {
        return entry.getOptions().entrySet().stream().map(e -> " " + e.getKey() + "=\"" + e.getValue() + "\"")
            .collect(Collectors.joining("", entry.getLoginModuleName() + " required", ";"));
    }
}
