// Applications with franz-go: how long a group takes to settle and what it reads a second, how fast transactions are.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Timeout of everything that is waited for.
const timeout = 2 * time.Minute

// Members ask this often whether they must rebalance: a broker is measured, not a client's patience.
const heartbeat = 50 * time.Millisecond

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("say settle, consume or transact"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	broker := flags.String("broker", "", "HOST:PORT")
	topic := flags.String("topic", "", "the topic to read")
	partitions := flags.Int("partitions", 200, "partitions of the topic")
	members := flags.Int("members", 100, "members before one more joins")
	rounds := flags.Int("rounds", 11, "how often one more joins and leaves, or everything is read; the median counts")
	records := flags.Int("records", 0, "records in the topic")
	seconds := flags.Float64("seconds", 10, "how long transactions are committed")
	fail(flags.Parse(os.Args[2:]))
	var measured map[string]float64
	var err error
	switch os.Args[1] {
	case "settle":
		measured, err = settle(*broker, *topic, *partitions, *members, *rounds)
	case "consume":
		measured, err = consume(*broker, *topic, *partitions, *records, *rounds)
	case "transact":
		measured, err = transact(*broker, *topic, *seconds)
	default:
		err = fmt.Errorf("%q is unknown: say settle, consume or transact", os.Args[1])
	}
	fail(err)
	fail(json.NewEncoder(os.Stdout).Encode(measured))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What the members of a group own, as they say themselves.
type ownership struct {
	mutex   sync.Mutex
	owned   []int
	changed chan struct{}
}

func (all *ownership) set(member, count int) {
	all.mutex.Lock()
	all.owned[member] = count
	all.mutex.Unlock()
	select {
	case all.changed <- struct{}{}:
	default:
	}
}

// settled says whether each of the first members owns something, and all of them together every partition.
func (all *ownership) settled(members, partitions int) bool {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	sum := 0
	for _, count := range all.owned[:members] {
		if count == 0 {
			return false
		}
		sum += count
	}
	return sum == partitions
}

func (all *ownership) wait(members, partitions int) error {
	deadline := time.After(timeout)
	for !all.settled(members, partitions) {
		select {
		case <-all.changed:
		case <-deadline:
			return fmt.Errorf("the group of %d has not settled: %v", members, all.owned)
		}
	}
	return nil
}

func count(partitions map[string][]int32) int {
	sum := 0
	for _, each := range partitions {
		sum += len(each)
	}
	return sum
}

// settle measures from the start of one more member until every partition has an owner again, with all members owning some.
func settle(broker, topic string, partitions, members, rounds int) (map[string]float64, error) {
	all := &ownership{owned: make([]int, members+1), changed: make(chan struct{}, 1)}
	group := fmt.Sprintf("settle-%d", time.Now().UnixNano())
	join := func(member int) (*kgo.Client, error) {
		return kgo.NewClient(
			kgo.SeedBrokers(broker), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
			kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(heartbeat), kgo.DisableAutoCommit(),
			kgo.FetchMaxWait(heartbeat),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
				all.set(member, count(got))
			}),
			kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { all.set(member, 0) }),
		)
	}
	for member := range members {
		client, err := join(member)
		if err != nil {
			return nil, err
		}
		defer client.CloseAllowingRebalance()
	}
	if err := all.wait(members, partitions); err != nil {
		return nil, err
	}
	times := make([]float64, rounds)
	for round := range times {
		started := time.Now()
		last, err := join(members)
		if err != nil {
			return nil, err
		}
		if err := all.wait(members+1, partitions); err != nil {
			return nil, err
		}
		times[round] = time.Since(started).Seconds()
		last.CloseAllowingRebalance()
		all.set(members, 0)
		if err := all.wait(members, partitions); err != nil {
			return nil, err
		}
	}
	return map[string]float64{"settle_s": median(times)}, nil
}

// consume reads a topic from its start with assigned partitions and in a group of one member, in turns.
func consume(broker, topic string, partitions, records, rounds int) (map[string]float64, error) {
	offsets := map[int32]kgo.Offset{}
	for partition := range partitions {
		offsets[int32(partition)] = kgo.NewOffset().AtStart()
	}
	assigned, grouped := make([]float64, rounds), make([]float64, rounds)
	for round := range rounds {
		var err error
		assigned[round], err = read(records, kgo.SeedBrokers(broker),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
		if err != nil {
			return nil, err
		}
		grouped[round], err = read(records, kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic),
			kgo.ConsumerGroup(fmt.Sprintf("consume-%d", time.Now().UnixNano())),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(time.Second))
		if err != nil {
			return nil, err
		}
	}
	return map[string]float64{"assigned_per_s": median(assigned), "grouped_per_s": median(grouped)}, nil
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// read gives the records read in a second, from the first that arrives on: joining a group is not reading.
func read(records int, options ...kgo.Opt) (float64, error) {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return 0, err
	}
	defer client.CloseAllowingRebalance()
	waiting, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	first := client.PollFetches(waiting)
	started, got := time.Now(), first.NumRecords()
	before := got
	for got < records {
		fetches := client.PollFetches(waiting)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("after %d of %d records: %w", got, records, err)
		}
		got += fetches.NumRecords()
	}
	return float64(got-before) / time.Since(started).Seconds(), nil
}
