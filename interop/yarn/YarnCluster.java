import java.io.FileOutputStream;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** Runs YARN with two node managers until standard input ends; writes yarn-site.xml for clients into a directory. */
public final class YarnCluster {
    private static final String FIFO =
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler";

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new YarnConfiguration();
        settings.set("hadoop.tmp.dir", arguments[0]);
        settings.set("yarn.resourcemanager.scheduler.class", FIFO);  // the default one needs a file of queues
        settings.set("yarn.scheduler.minimum-allocation-mb", "128");
        settings.set("yarn.nodemanager.vmem-check-enabled", "false");
        settings.set("yarn.nodemanager.delete.debug-delay-sec", "600");  // keeps the logs of containers
        settings.set(
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99");
        MiniYARNCluster cluster = new MiniYARNCluster("barnabas", 2, 1, 1);
        cluster.init(settings);
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(30_000)) {
            throw new IllegalStateException("the node managers have not registered within 30 s");
        }
        try (OutputStream file = new FileOutputStream(arguments[0] + "/yarn-site.xml")) {
            cluster.getConfig().writeXml(file);
        }
        System.out.println("YARN runs");
        while (System.in.read() >= 0) {
            // nothing is written: the stream ends with the process that started this one
        }
        cluster.stop();
    }
}
