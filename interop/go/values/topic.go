package values

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Write sends one record to a topic, which it creates.
func Write(ctx context.Context, bootstrap, topic string, value []byte) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr()
}

// Read returns the values of the first records of a topic.
func Read(ctx context.Context, bootstrap, topic string, count int) ([][]byte, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var values [][]byte
	for len(values) < count {
		fetches := client.PollRecords(ctx, count-len(values))
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			values = append(values, record.Value)
		}
	}
	return values, nil
}
