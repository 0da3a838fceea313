package kafka.security.minikdc;

import barnabas.CurrentTest;
import java.io.File;
import java.util.List;
import java.util.Properties;

/** In place of the class of this name in Kafka's test jar, a Kerberos server: Barnabas has no SASL/GSSAPI. */
public class MiniKdc {
    public MiniKdc(Properties config, File workDir) {
    }

    public static Properties createConfig() {
        return new Properties();
    }

    public void start() {
        throw CurrentTest.notApplicable(CurrentTest.Kind.SASL, "GSSAPI");
    }

    public void stop() {
    }

    public void createPrincipal(File keytabFile, List<String> principals) {
    }
}
