import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.confluent.kafka.schemaregistry.CompatibilityLevel;
import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.SchemaProvider;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.avro.AvroSchemaProvider;
import io.confluent.kafka.schemaregistry.avro.AvroSchemaUtils;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchemaProvider;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import io.confluent.kafka.serializers.protobuf.KafkaProtobufDeserializer;
import io.confluent.kafka.serializers.protobuf.KafkaProtobufSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.GenericData;

/**
 * Confluent's serializers as a JSON-lines program: {@code Serializers REGISTRY-URL}.
 *
 * <p>A schema is {@code {"type": "AVRO"|"PROTOBUF", "text": ..., "references": [{"name", "subject", "version"}],
 * "resolved": {name: text}}}. Operations:
 *
 * <ul>
 *   <li>serialize: topic, schema, value (JSON), message (Protobuf), config; returns hexadecimal digits
 *   <li>deserialize: topic, type, data, config; returns the value as JSON
 *   <li>register: subject, schema; returns the id
 *   <li>latest: subject; returns the id and the version
 *   <li>schema: id; returns the text
 *   <li>is_compatible: subject, schema; the registry decides
 *   <li>level: subject, level; sets it
 *   <li>subjects, versions (subject), delete_version (subject, version), delete_subject (subject, permanent)
 *   <li>decide: level, schema, earlier; Confluent's library decides; returns what is incompatible
 * </ul>
 */
public final class Serializers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<SchemaProvider> PROVIDERS =
            List.of(new AvroSchemaProvider(), new ProtobufSchemaProvider());

    private final SchemaRegistryClient client;
    private final String url;

    private Serializers(String url) {
        this.url = url;
        this.client = newClient();
    }

    private SchemaRegistryClient newClient() {
        return new CachedSchemaRegistryClient(List.of(url), 1000, PROVIDERS, Map.of(), Map.of());
    }

    public static void main(String[] arguments) throws Exception {
        var answers = System.out;
        System.setOut(System.err); // for what libraries print
        var serializers = new Serializers(arguments[0]);
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            answers.println(JSON.writeValueAsString(serializers.answer(JSON.readTree(line))));
        }
    }

    private Map<String, Object> answer(JsonNode command) {
        try {
            var result = new HashMap<String, Object>();
            result.put("ok", run(command));
            return result;
        } catch (Exception | LinkageError error) {
            Throwable cause = error;
            while (cause.getCause() != null && !(cause instanceof RestClientException)) {
                cause = cause.getCause();
            }
            String code = cause instanceof RestClientException refused
                    ? refused.getStatus() + " " + refused.getErrorCode() + " " : "";
            return Map.of("error", cause.getClass().getSimpleName(), "message", code + cause.getMessage());
        }
    }

    private Object run(JsonNode command) throws Exception {
        String subject = command.path("subject").asText();
        switch (command.get("do").asText()) {
            case "serialize":
                return serialize(command);
            case "deserialize":
                return deserialize(command);
            case "register":
                return client.register(subject, schema(command.get("schema")));
            case "latest":
                var latest = client.getLatestSchemaMetadata(subject);
                return Map.of("id", latest.getId(), "version", latest.getVersion());
            case "schema":
                return client.getSchemaById(command.get("id").asInt()).canonicalString();
            case "is_compatible":
                return client.testCompatibility(subject, schema(command.get("schema")));
            case "level":
                return client.updateCompatibility(subject, command.get("level").asText());
            case "subjects":
                return new ArrayList<>(client.getAllSubjects());
            case "versions":
                return client.getAllVersions(subject);
            case "delete_version":
                return client.deleteSchemaVersion(subject, command.get("version").asText());
            case "delete_subject":
                return client.deleteSubject(subject, command.path("permanent").asBoolean());
            case "decide":
                return decide(command);
            default:
                throw new IllegalArgumentException("no operation " + command);
        }
    }

    private Object serialize(JsonNode command) throws Exception {
        var schema = schema(command.get("schema"));
        String topic = command.get("topic").asText();
        String value = command.get("value").toString();
        byte[] data;
        if (schema instanceof AvroSchema avro) {
            var object = AvroSchemaUtils.toObject(command.get("value"), avro);
            data = new KafkaAvroSerializer(client, config(command)).serialize(topic, object);
        } else {
            var builder = ((ProtobufSchema) schema).copy(command.get("message").asText()).newMessageBuilder();
            JsonFormat.parser().merge(value, builder);
            data = new KafkaProtobufSerializer<Message>(client, config(command)).serialize(topic, builder.build());
        }
        return HexFormat.of().formatHex(data);
    }

    private Object deserialize(JsonNode command) throws Exception {
        var client = newClient(); // it does not know what the serializer has registered
        byte[] data = HexFormat.of().parseHex(command.get("data").asText());
        String topic = command.get("topic").asText();
        if (command.get("type").asText().equals("AVRO")) {
            Object value = new KafkaAvroDeserializer(client, config(command)).deserialize(topic, data);
            return JSON.readTree(GenericData.get().toString(value));
        }
        var message = new KafkaProtobufDeserializer<DynamicMessage>(client, config(command)).deserialize(topic, data);
        return JSON.readTree(JsonFormat.printer().print(message));
    }

    private Map<String, Object> config(JsonNode command) {
        Map<String, Object> config = new HashMap<>(Map.of("schema.registry.url", url));
        command.path("config").fields().forEachRemaining(each -> config.put(each.getKey(), each.getValue().asText()));
        return config;
    }

    private static Object decide(JsonNode command) {
        var earlier = new ArrayList<ParsedSchema>();
        command.get("earlier").forEach(each -> earlier.add(schema(each)));
        var level = CompatibilityLevel.forName(command.get("level").asText());
        return schema(command.get("schema")).isCompatible(level, earlier);
    }

    private static ParsedSchema schema(JsonNode described) {
        var references = new ArrayList<SchemaReference>();
        described.path("references").forEach(each -> references.add(new SchemaReference(
                each.get("name").asText(), each.get("subject").asText(), each.get("version").asInt())));
        Map<String, String> resolved = new HashMap<>();
        described.path("resolved").fields().forEachRemaining(
                each -> resolved.put(each.getKey(), each.getValue().asText()));
        String text = described.get("text").asText();
        return described.get("type").asText().equals("AVRO")
                ? new AvroSchema(text, references, resolved, null)
                : new ProtobufSchema(text, references, resolved, null, null);
    }
}
