package barnabas;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.utils.Utils;

/** The metadata store that the brokers of a test share, in a directory of its own. */
public final class Store implements AutoCloseable {
    private static final boolean SEVERAL = Boolean.getBoolean("barnabas.several");
    private final File directory;

    private Store() throws IOException {
        directory = Files.createTempDirectory("barnabas-store-").toFile();
    }

    /** Create a store, or return null where each test gets one broker. */
    public static Store create() {
        try {
            return SEVERAL ? new Store() : null;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    Path path() {
        return directory.toPath().resolve("store.db");
    }

    @Override
    public void close() {
        try {
            Utils.delete(directory);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
