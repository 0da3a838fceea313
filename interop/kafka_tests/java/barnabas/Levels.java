package barnabas;

import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** The levels of features that storage is formatted with. */
public final class Levels {
    private Levels() {
    }

    public static Map<String, Short> of(BootstrapMetadata metadata) {
        Map<String, Short> levels = new TreeMap<>();
        levels.put(MetadataVersion.FEATURE_NAME, metadata.metadataVersion().featureLevel());
        for (Feature each : Feature.PRODUCTION_FEATURES)
            levels.put(each.featureName(), metadata.featureLevel(each.featureName()));
        return levels;
    }

    /** Barnabas begins with the levels that Kafka's newest release does. */
    static Map<String, Short> belowNewest(Map<String, Short> levels) {
        Map<String, Short> below = new TreeMap<>(levels);
        MetadataVersion newest = MetadataVersion.latestProduction();
        below.entrySet().removeIf(each -> each.getValue() >= newest(each.getKey(), newest));
        return below;
    }

    private static short newest(String name, MetadataVersion version) {
        if (name.equals(MetadataVersion.FEATURE_NAME))
            return version.featureLevel();
        return Feature.PRODUCTION_FEATURES.stream().filter(each -> each.featureName().equals(name)).map(each -> each.defaultLevel(version)).findFirst().orElse((short) 0);
    }
}
