package barnabas.interop;

import java.util.HashMap;
import java.util.Map;

/** Where the clients connect, as whom they log in, and which certificates they use: see interop/README.md. */
record Connection(String bootstrap) {
    /** The configuration of a client: what all have in common, then its own. */
    Map<String, Object> configs(Map<String, Object> own) {
        var configs = new HashMap<String, Object>(Map.of("bootstrap.servers", bootstrap));
        String mechanism = System.getenv("INTEROP_MECHANISM");
        String authority = System.getenv("INTEROP_AUTHORITY");
        String keystore = System.getenv("INTEROP_KEYSTORE");
        configs.put("security.protocol", (mechanism == null ? "" : "SASL_") + (authority == null ? "PLAINTEXT" : "SSL"));
        if (authority != null) {
            configs.putAll(Map.of("ssl.truststore.type", "PEM", "ssl.truststore.location", authority));
        }
        if (keystore != null) {
            configs.putAll(Map.of("ssl.keystore.type", "PEM", "ssl.keystore.location", keystore));
        }
        if (mechanism != null) {
            configs.put("sasl.mechanism", mechanism);
            configs.put("sasl.jaas.config", login(mechanism));
        }
        configs.putAll(own);
        return configs;
    }

    private static String login(String mechanism) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        String token = System.getenv("INTEROP_TOKEN") == null ? "" : " tokenauth=true";
        return "org.apache.kafka.common.security." + module + " required username=\"" + System.getenv("INTEROP_USER")
                + "\" password=\"" + System.getenv("INTEROP_PASSWORD") + "\"" + token + ";";
    }
}
