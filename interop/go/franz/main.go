// franz-go as a JSON-lines program: franz HOST:PORT.
package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"

	"barnabas.interop/lines"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	logins "github.com/twmb/franz-go/pkg/sasl/scram"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func connect(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(strings.Split(os.Args[1], ",")...))
	// A broker that is killed ends new connections without a response; the client takes that for missing SASL.
	options = append(options, kgo.AlwaysRetryEOF())
	if mechanism := login(); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	if config := lines.TLS(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	return client
}

// login is how and as whom to log in, from the environment; nil without SASL.
func login() sasl.Mechanism {
	user, password := os.Getenv("INTEROP_USER"), os.Getenv("INTEROP_PASSWORD")
	scram := logins.Auth{User: user, Pass: password, IsToken: os.Getenv("INTEROP_TOKEN") != ""}
	switch os.Getenv("INTEROP_MECHANISM") {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.AsSha512Mechanism()
	}
	return nil
}

func main() {
	client := connect()
	defer client.Close()
	admin := kadm.NewClient(client)
	operations := map[string]lines.Operation{
		"metadata":          with(admin, metadata),
		"create_topic":      with(admin, createTopic),
		"delete_topic":      with(admin, deleteTopic),
		"create_partitions": with(admin, createPartitions),
		"topic_configs":     with(admin, topicConfigs),
		"broker_configs":    with(admin, brokerConfigs),
		"offsets":           with(admin, offsets),
		"offset_at":         with(admin, offsetAt),
		"delete_records":    with(admin, deleteRecords),
		"produce":           produce,
		"transact":          transact,
		"consume":           consume,
	}
	for command, operation := range clusterOperations {
		operations[command] = with(admin, operation)
	}
	maps.Copy(operations, lines.Member(join))
	lines.Serve(operations, name)
}

type adminOperation func(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error)

func with(admin *kadm.Client, operation adminOperation) lines.Operation {
	return func(ctx context.Context, c lines.Command) (any, error) { return operation(ctx, admin, c) }
}

// name is Kafka's name for a broker's error.
func name(err error) string {
	var broker *kerr.Error
	if errors.As(err, &broker) {
		return broker.Message
	}
	return err.Error()
}

func metadata(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	var wanted []string
	if c.Topic != "" {
		wanted = []string{c.Topic}
	}
	found, err := admin.Metadata(ctx, wanted...)
	if err != nil {
		return nil, err
	}
	result := lines.Metadata{Topics: map[string][]int32{}}
	for _, broker := range found.Brokers {
		result.Brokers = append(result.Brokers, net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port))))
	}
	for _, topic := range found.Topics {
		result.Topics[topic.Topic] = topic.Partitions.Numbers()
	}
	return result, found.Topics.Error()
}

func createTopic(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	configs := map[string]*string{}
	for key, value := range c.Configs {
		configs[key] = &value
	}
	_, err := admin.CreateTopic(ctx, c.Partitions, -1, configs, c.Topic)
	return nil, err
}

func deleteTopic(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	_, err := admin.DeleteTopic(ctx, c.Topic)
	return nil, err
}

func createPartitions(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	responses, err := admin.UpdatePartitions(ctx, c.Count, c.Topic)
	return nil, errors.Join(err, responses.Error())
}

func topicConfigs(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	return configs(admin.DescribeTopicConfigs(ctx, c.Topic))
}

func brokerConfigs(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	return configs(admin.DescribeBrokerConfigs(ctx, c.Broker))
}

func configs(found kadm.ResourceConfigs, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	values := map[string]*string{}
	for _, config := range found[0].Configs {
		values[config.Key] = config.Value
	}
	return values, found[0].Err
}

func offsets(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	earliest, err := listed(c)(admin.ListStartOffsets(ctx, c.Topic))
	if err != nil {
		return nil, err
	}
	latest, err := listed(c)(admin.ListEndOffsets(ctx, c.Topic))
	return lines.Offsets{Earliest: earliest, Latest: latest}, err
}

// kadm gives the end of the partition where no record is at or after the timestamp; its -1 says so.
func offsetAt(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	all, err := admin.ListOffsetsAfterMilli(ctx, *c.Timestamp, c.Topic)
	if err != nil {
		return nil, err
	}
	offset, _ := all.Lookup(c.Topic, c.Partition)
	if offset.Timestamp < 0 {
		return nil, offset.Err
	}
	return offset.Offset, offset.Err
}

func listed(c lines.Command) func(kadm.ListedOffsets, error) (int64, error) {
	return func(all kadm.ListedOffsets, err error) (int64, error) {
		if err != nil {
			return 0, err
		}
		offset, _ := all.Lookup(c.Topic, c.Partition)
		return offset.Offset, offset.Err
	}
}

func deleteRecords(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	var before kadm.Offsets
	before.AddOffset(c.Topic, c.Partition, c.Before, -1)
	responses, err := admin.DeleteRecords(ctx, before)
	if err != nil {
		return nil, err
	}
	response, _ := responses.Lookup(c.Topic, c.Partition)
	return response.LowWatermark, response.Err
}

func produce(ctx context.Context, c lines.Command) (any, error) {
	options := []kgo.Opt{
		kgo.UnknownTopicRetries(0), // or it waits half a minute for the topic to appear
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[c.Codec]),
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client := connect(options...)
	defer client.Close()
	var records []*kgo.Record
	for _, record := range c.Records {
		records = append(records, toKgo(c, record))
	}
	results := client.ProduceSync(ctx, records...)
	delivered := []int64{}
	for _, result := range results {
		delivered = append(delivered, result.Record.Offset)
	}
	return delivered, results.FirstErr()
}

func transact(ctx context.Context, c lines.Command) (any, error) {
	client := connect(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(c.Transaction))
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return nil, err
	}
	var records []*kgo.Record
	for _, record := range c.Records {
		records = append(records, toKgo(c, record))
	}
	produced := client.ProduceSync(ctx, records...).FirstErr()
	return nil, errors.Join(produced, client.EndTransaction(ctx, kgo.TransactionEndTry(c.Commit)))
}

func toKgo(c lines.Command, record lines.Record) *kgo.Record {
	var headers []kgo.RecordHeader
	for _, header := range record.Headers {
		headers = append(headers, kgo.RecordHeader{Key: header[0], Value: []byte(header[1])})
	}
	return &kgo.Record{
		Topic: c.Topic, Partition: c.Partition, Timestamp: record.Time(), Headers: headers,
		Key: lines.Bytes(record.Key), Value: lines.Bytes(record.Value),
	}
}

func consume(ctx context.Context, c lines.Command) (any, error) {
	start := kgo.NewOffset().AtStart()
	if c.Timestamp != nil {
		start = kgo.NewOffset().AfterMilli(*c.Timestamp)
	}
	client := connect(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: start}}))
	defer client.Close()
	read := []lines.Record{}
	for len(read) < c.Count {
		fetches := client.PollRecords(ctx, c.Count-len(read))
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			read = append(read, fromKgo(record))
		}
	}
	return read, nil
}

func fromKgo(record *kgo.Record) lines.Record {
	timestamp := record.Timestamp.UnixMilli()
	headers := [][2]string{}
	for _, header := range record.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	return lines.Record{
		Key: lines.Text(record.Key), Value: lines.Text(record.Value),
		Headers: headers, Timestamp: &timestamp, Offset: record.Offset,
	}
}
