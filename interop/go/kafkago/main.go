// kafka-go as a JSON-lines program: kafkago HOST:PORT. It has no idempotent
// producer and cannot delete records.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"reflect"
	"strconv"
	"time"

	"barnabas.interop/lines"
	"github.com/segmentio/kafka-go"
)

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// connect gives each command a transport of its own: one keeps what it knows of the topics for seconds.
func connect() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(os.Args[1]), Transport: &kafka.Transport{}}
}

func main() {
	operations := map[string]lines.Operation{
		"metadata":          metadata,
		"create_topic":      createTopic,
		"delete_topic":      deleteTopic,
		"create_partitions": createPartitions,
		"topic_configs":     topicConfigs,
		"broker_configs":    brokerConfigs,
		"offsets":           offsets,
		"offset_at":         offsetAt,
		"produce":           produce,
		"consume":           consume,

		"replace_topic_configs": replaceTopicConfigs,
	}
	maps.Copy(operations, lines.Member(join))
	lines.Serve(operations, name)
}

// name is the title of a broker's error.
func name(err error) string {
	var code kafka.Error
	if errors.As(err, &code) {
		return code.Title()
	}
	var large kafka.MessageTooLargeError
	if errors.As(err, &large) {
		return "MessageTooLargeError"
	}
	var writes kafka.WriteErrors
	if errors.As(err, &writes) {
		return name(writes[0])
	}
	return reflect.TypeOf(err).String()
}

func metadata(ctx context.Context, c lines.Command) (any, error) {
	request := kafka.MetadataRequest{}
	if c.Topic != "" {
		request.Topics = []string{c.Topic}
	}
	found, err := connect().Metadata(ctx, &request)
	if err != nil {
		return nil, err
	}
	result := lines.Metadata{Topics: map[string][]int32{}}
	for _, broker := range found.Brokers {
		result.Brokers = append(result.Brokers, net.JoinHostPort(broker.Host, strconv.Itoa(broker.Port)))
	}
	for _, topic := range found.Topics {
		if topic.Error != nil {
			return nil, topic.Error
		}
		result.Topics[topic.Name] = numbers(topic.Partitions)
	}
	return result, nil
}

func numbers(partitions []kafka.Partition) []int32 {
	found := make([]int32, len(partitions))
	for _, partition := range partitions {
		found[partition.ID] = int32(partition.ID)
	}
	return found
}

func createTopic(ctx context.Context, c lines.Command) (any, error) {
	topic := kafka.TopicConfig{Topic: c.Topic, NumPartitions: int(c.Partitions), ReplicationFactor: 1}
	for key, value := range c.Configs {
		topic.ConfigEntries = append(topic.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	response, err := connect().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err != nil {
		return nil, err
	}
	return nil, response.Errors[c.Topic]
}

func replaceTopicConfigs(ctx context.Context, c lines.Command) (any, error) {
	resource := kafka.AlterConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: c.Topic}
	for key, value := range c.Configs {
		resource.Configs = append(resource.Configs, kafka.AlterConfigRequestConfig{Name: key, Value: value})
	}
	request := kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{resource}}
	response, err := connect().AlterConfigs(ctx, &request)
	if err != nil {
		return nil, err
	}
	for _, refused := range response.Errors {
		return nil, refused
	}
	return nil, nil
}

func deleteTopic(ctx context.Context, c lines.Command) (any, error) {
	response, err := connect().DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{c.Topic}})
	if err != nil {
		return nil, err
	}
	return nil, response.Errors[c.Topic]
}

func createPartitions(ctx context.Context, c lines.Command) (any, error) {
	response, err := connect().CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: c.Topic, Count: int32(c.Count)}},
	})
	if err != nil {
		return nil, err
	}
	return nil, response.Errors[c.Topic]
}

func topicConfigs(ctx context.Context, c lines.Command) (any, error) {
	return configs(ctx, kafka.ResourceTypeTopic, c.Topic)
}

func brokerConfigs(ctx context.Context, c lines.Command) (any, error) {
	return configs(ctx, kafka.ResourceTypeBroker, fmt.Sprint(c.Broker))
}

func configs(ctx context.Context, kind kafka.ResourceType, name string) (any, error) {
	response, err := connect().DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kind, ResourceName: name}},
	})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, entry := range response.Resources[0].ConfigEntries {
		values[entry.ConfigName] = entry.ConfigValue
	}
	return values, response.Resources[0].Error
}

func offsets(ctx context.Context, c lines.Command) (any, error) {
	partition := int(c.Partition)
	found, err := listed(ctx, c, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	return lines.Offsets{Earliest: found.FirstOffset, Latest: found.LastOffset}, err
}

func offsetAt(ctx context.Context, c lines.Command) (any, error) {
	found, err := listed(ctx, c, kafka.TimeOffsetOf(int(c.Partition), time.UnixMilli(*c.Timestamp)))
	for offset := range found.Offsets {
		return lines.Found(offset), err
	}
	return nil, err
}

func listed(ctx context.Context, c lines.Command, wanted ...kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	response, err := connect().ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{c.Topic: wanted},
	})
	if err != nil {
		return kafka.PartitionOffsets{}, err
	}
	found := response.Topics[c.Topic][0]
	return found, found.Error
}

func produce(ctx context.Context, c lines.Command) (any, error) {
	delivered := []int64{}
	writer := kafka.Writer{
		Addr: kafka.TCP(os.Args[1]), Transport: &kafka.Transport{}, Topic: c.Topic, Compression: codecs[c.Codec], RequiredAcks: kafka.RequireAll,
		Balancer:    kafka.BalancerFunc(func(kafka.Message, ...int) int { return int(c.Partition) }),
		BatchSize:   len(c.Records),
		MaxAttempts: 1,
		Completion: func(written []kafka.Message, _ error) {
			for _, message := range written {
				delivered = append(delivered, message.Offset)
			}
		},
	}
	var messages []kafka.Message
	for _, record := range c.Records {
		messages = append(messages, toKafka(record))
	}
	err := writer.WriteMessages(ctx, messages...)
	return delivered, errors.Join(err, writer.Close())
}

func toKafka(record lines.Record) kafka.Message {
	var headers []kafka.Header
	for _, header := range record.Headers {
		headers = append(headers, kafka.Header{Key: header[0], Value: []byte(header[1])})
	}
	return kafka.Message{
		Key: lines.Bytes(record.Key), Value: lines.Bytes(record.Value), Headers: headers, Time: record.Time(),
	}
}

func consume(ctx context.Context, c lines.Command) (any, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{os.Args[1]}, Topic: c.Topic, Partition: int(c.Partition), MaxWait: 100 * time.Millisecond,
	})
	defer reader.Close()
	if c.Timestamp != nil {
		if err := reader.SetOffsetAt(ctx, time.UnixMilli(*c.Timestamp)); err != nil {
			return nil, err
		}
	}
	read := []lines.Record{}
	for len(read) < c.Count {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		read = append(read, fromKafka(message))
	}
	return read, nil
}

func fromKafka(message kafka.Message) lines.Record {
	timestamp := message.Time.UnixMilli()
	headers := [][2]string{}
	for _, header := range message.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	return lines.Record{
		Key: lines.Text(message.Key), Value: lines.Text(message.Value),
		Headers: headers, Timestamp: &timestamp, Offset: message.Offset,
	}
}
