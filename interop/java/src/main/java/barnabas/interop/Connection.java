package barnabas.interop;

import java.util.HashMap;
import java.util.Map;

/** Where the clients connect, and as whom they log in when INTEROP_MECHANISM says how. */
record Connection(String bootstrap) {
    /** The configuration of a client: what all have in common, then its own. */
    Map<String, Object> configs(Map<String, Object> own) {
        var configs = new HashMap<String, Object>(Map.of("bootstrap.servers", bootstrap));
        String mechanism = System.getenv("INTEROP_MECHANISM");
        if (mechanism != null) {
            configs.put("security.protocol", "SASL_PLAINTEXT");
            configs.put("sasl.mechanism", mechanism);
            configs.put("sasl.jaas.config", login(mechanism));
        }
        configs.putAll(own);
        return configs;
    }

    private static String login(String mechanism) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        return "org.apache.kafka.common.security." + module + " required username=\"" + System.getenv("INTEROP_USER")
                + "\" password=\"" + System.getenv("INTEROP_PASSWORD") + "\";";
    }
}
