import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;

/**
 * Coordinator records read and written back by Apache Kafka's own classes. Each line of the input is
 * {@code group|transaction KEY VALUE} in hexadecimal, with {@code -} for no value; the answer is the same, as Kafka writes
 * it.
 */
public final class Records {
    private static final HexFormat HEX = HexFormat.of();

    private Records() {}

    public static void main(String[] arguments) throws Exception {
        var group = new GroupCoordinatorRecordSerde();
        var transaction = new TransactionCoordinatorRecordSerde();
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            System.out.println(words[0] + " " + echo(words[0].equals("group") ? group : transaction, words));
        }
    }

    private static String echo(CoordinatorRecordSerde serde, String[] words) {
        ByteBuffer value = words[2].equals("-") ? null : ByteBuffer.wrap(HEX.parseHex(words[2]));
        var record = serde.deserialize(ByteBuffer.wrap(HEX.parseHex(words[1])), value);
        byte[] written = serde.serializeValue(record);
        return HEX.formatHex(serde.serializeKey(record)) + " " + (written == null ? "-" : HEX.formatHex(written));
    }
}
