// sarama as a JSON-lines program: sarama HOST:PORT.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"

	"barnabas.interop/lines"
	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func connect(config *sarama.Config) (sarama.Client, error) {
	return sarama.NewClient([]string{os.Args[1]}, config)
}

func main() {
	client, err := connect(newConfig())
	if err != nil {
		panic(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		panic(err)
	}
	defer admin.Close()
	at := administration{client, admin}
	operations := map[string]lines.Operation{
		"metadata":          at.metadata,
		"create_topic":      at.createTopic,
		"delete_topic":      at.deleteTopic,
		"create_partitions": at.createPartitions,
		"topic_configs":     at.topicConfigs,
		"broker_configs":    at.brokerConfigs,
		"offsets":           at.offsets,
		"offset_at":         at.offsetAt,
		"delete_records":    at.deleteRecords,
		"produce":           produce,
		"transact":          transact,
		"consume":           consume,
	}
	maps.Copy(operations, clusterOperations(at))
	maps.Copy(operations, lines.Member(join))
	lines.Serve(operations, name)
}

// name is the code of a broker's error, which sarama's users compare with its Err constants.
func name(err error) string {
	var code sarama.KError
	if errors.As(err, &code) {
		return fmt.Sprintf("KError(%d)", int16(code))
	}
	if topic := (*sarama.TopicError)(nil); errors.As(err, &topic) {
		return fmt.Sprintf("KError(%d)", int16(topic.Err))
	}
	if partition := (*sarama.TopicPartitionError)(nil); errors.As(err, &partition) {
		return fmt.Sprintf("KError(%d)", int16(partition.Err))
	}
	return reflect.TypeOf(err).String()
}

type administration struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
}

func (at administration) metadata(_ context.Context, c lines.Command) (any, error) {
	var wanted []string
	if c.Topic != "" {
		wanted = []string{c.Topic}
	}
	topics, err := at.admin.DescribeTopics(wanted)
	if err != nil {
		return nil, err
	}
	result := lines.Metadata{Topics: map[string][]int32{}}
	for _, broker := range at.client.Brokers() {
		result.Brokers = append(result.Brokers, broker.Addr())
	}
	for _, topic := range topics {
		if topic.Err != sarama.ErrNoError {
			return nil, topic.Err
		}
		result.Topics[topic.Name] = numbers(topic.Partitions)
	}
	return result, nil
}

func numbers(partitions []*sarama.PartitionMetadata) []int32 {
	found := make([]int32, len(partitions))
	for _, partition := range partitions {
		found[partition.ID] = partition.ID
	}
	return found
}

func (at administration) createTopic(_ context.Context, c lines.Command) (any, error) {
	configs := map[string]*string{}
	for key, value := range c.Configs {
		configs[key] = &value
	}
	detail := sarama.TopicDetail{NumPartitions: c.Partitions, ReplicationFactor: 1, ConfigEntries: configs}
	return nil, at.admin.CreateTopic(c.Topic, &detail, false)
}

func (at administration) deleteTopic(_ context.Context, c lines.Command) (any, error) {
	return nil, at.admin.DeleteTopic(c.Topic)
}

func (at administration) createPartitions(_ context.Context, c lines.Command) (any, error) {
	return nil, at.admin.CreatePartitions(c.Topic, int32(c.Count), nil, false)
}

func (at administration) topicConfigs(_ context.Context, c lines.Command) (any, error) {
	return at.configs(sarama.ConfigResource{Type: sarama.TopicResource, Name: c.Topic})
}

func (at administration) brokerConfigs(_ context.Context, c lines.Command) (any, error) {
	return at.configs(sarama.ConfigResource{Type: sarama.BrokerResource, Name: fmt.Sprint(c.Broker)})
}

func (at administration) configs(resource sarama.ConfigResource) (any, error) {
	entries, err := at.admin.DescribeConfig(resource)
	values := map[string]string{}
	for _, entry := range entries {
		values[entry.Name] = entry.Value
	}
	return values, err
}

func (at administration) offsets(_ context.Context, c lines.Command) (any, error) {
	earliest, err := at.client.GetOffset(c.Topic, c.Partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	latest, err := at.client.GetOffset(c.Topic, c.Partition, sarama.OffsetNewest)
	return lines.Offsets{Earliest: earliest, Latest: latest}, err
}

func (at administration) offsetAt(_ context.Context, c lines.Command) (any, error) {
	offset, err := at.client.GetOffset(c.Topic, c.Partition, *c.Timestamp)
	return lines.Found(offset), err
}

func (at administration) deleteRecords(_ context.Context, c lines.Command) (any, error) {
	if err := at.admin.DeleteRecords(c.Topic, map[int32]int64{c.Partition: c.Before}); err != nil {
		return nil, err
	}
	return at.client.GetOffset(c.Topic, c.Partition, sarama.OffsetOldest)
}

func produce(_ context.Context, c lines.Command) (any, error) {
	producer, err := sarama.NewSyncProducer([]string{os.Args[1]}, producerConfig(c))
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var messages []*sarama.ProducerMessage
	for _, record := range c.Records {
		messages = append(messages, toSarama(c, record))
	}
	if err := producer.SendMessages(messages); err != nil {
		return nil, firstOf(err)
	}
	delivered := []int64{}
	for _, message := range messages {
		delivered = append(delivered, message.Offset)
	}
	return delivered, nil
}

func transact(_ context.Context, c lines.Command) (any, error) {
	c.Idempotent = true
	config := producerConfig(c)
	config.Producer.Transaction.ID = c.Transaction
	producer, err := sarama.NewSyncProducer([]string{os.Args[1]}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	var messages []*sarama.ProducerMessage
	for _, record := range c.Records {
		messages = append(messages, toSarama(c, record))
	}
	if err := producer.SendMessages(messages); err != nil {
		return nil, firstOf(err)
	}
	if c.Commit {
		return nil, producer.CommitTxn()
	}
	return nil, producer.AbortTxn()
}

func producerConfig(c lines.Command) *sarama.Config {
	config := newConfig()
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = codecs[c.Codec]
	if c.Idempotent {
		config.Producer.Idempotent = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Net.MaxOpenRequests = 1
	}
	return config
}

func firstOf(err error) error {
	var each sarama.ProducerErrors
	if errors.As(err, &each) {
		return each[0].Err
	}
	return err
}

func toSarama(c lines.Command, record lines.Record) *sarama.ProducerMessage {
	message := sarama.ProducerMessage{Topic: c.Topic, Partition: c.Partition, Timestamp: record.Time()}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header[0]), Value: []byte(header[1])})
	}
	if record.Key != nil {
		message.Key = sarama.StringEncoder(*record.Key)
	}
	if record.Value != nil {
		message.Value = sarama.StringEncoder(*record.Value)
	}
	return &message
}

func consume(ctx context.Context, c lines.Command) (any, error) {
	client, err := connect(newConfig())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	start := sarama.OffsetOldest
	if c.Timestamp != nil {
		if start, err = client.GetOffset(c.Topic, c.Partition, *c.Timestamp); err != nil {
			return nil, err
		}
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	partition, err := consumer.ConsumePartition(c.Topic, c.Partition, start)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	return read(ctx, partition, c.Count)
}

func read(ctx context.Context, partition sarama.PartitionConsumer, count int) ([]lines.Record, error) {
	records := []lines.Record{}
	for len(records) < count {
		select {
		case message := <-partition.Messages():
			records = append(records, fromSarama(message))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return records, nil
}

func fromSarama(message *sarama.ConsumerMessage) lines.Record {
	timestamp := message.Timestamp.UnixMilli()
	headers := [][2]string{}
	for _, header := range message.Headers {
		headers = append(headers, [2]string{string(header.Key), string(header.Value)})
	}
	return lines.Record{
		Key: lines.Text(message.Key), Value: lines.Text(message.Value),
		Headers: headers, Timestamp: &timestamp, Offset: message.Offset,
	}
}
