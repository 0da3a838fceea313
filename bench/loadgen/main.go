// loadgen sends raw Kafka requests that are built once, so that the broker and
// not the client is what is measured. Each command prints its result as JSON.
//
//	loadgen produce  -broker HOST:PORT -topic T -connections 50 -depth 16 -seconds 5
//	loadgen mixture  -broker HOST:PORT -topic T -partitions 6 -versions 7,9,12,13 -connections 50 -depth 5 -seconds 5
//	loadgen everyday -broker HOST:PORT -topic T -partitions 6 -kind heartbeat -connections 50 -depth 1 -seconds 5
//	loadgen latency  -broker HOST:PORT -topic T -connections 10 -rate 5000 -seconds 5
//	loadgen fetch    -broker HOST:PORT -topic T -gib 2
//	loadgen create   -broker HOST:PORT -topic PREFIX -count 200
//	loadgen delete   -broker HOST:PORT -topic PREFIX -count 200
//	loadgen metadata -broker HOST:PORT -count 50
//	loadgen describe -broker HOST:PORT -topic PREFIX -topics 1000 -count 20
//	loadgen alter    -broker HOST:PORT -topic T -count 200
//	loadgen commit   -broker HOST:PORT -topic T -connections 10 -depth 16 -seconds 5
//	loadgen offsets  -broker HOST:PORT -topic T -partitions 100 -count 10000
//	loadgen loaded   -broker HOST:PORT -topic T -partitions 100 -count 10000
//	loadgen connect  -broker HOST:PORT -connections 20 -seconds 5
//
// All of them use TLS with -authority FILE, and with -certificate FILE a certificate of the client; they log in with
// -user NAME -password TEXT.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type options struct {
	broker      string
	topic       string
	partitions  int
	connections int
	depth       int
	seconds     float64
	rate        int
	gib         float64
	count       int
	topics      int
	valueBytes  int
	acks        int
	versions    string
	valueMin    int
	valueMax    int
	perRequest  int
	idempotent  bool
	kind        string
	network     int
	security    *security
}

var commands = map[string]func(options) map[string]float64{
	"produce": produce, "latency": latency, "fetch": fetch, "create": create, "delete": remove, "metadata": metadata,
	"mixture": mixture, "everyday": everyday, "describe": describe, "alter": alter, "commit": commit, "offsets": offsets, "loaded": loaded,
	"connect": connect,
}

func main() {
	command, known := commands[os.Args[1]]
	if !known {
		fail(fmt.Errorf("no command %q", os.Args[1]))
	}
	result, err := json.Marshal(command(parse(os.Args[2:])))
	check(err)
	fmt.Println(string(result))
}

func parse(arguments []string) options {
	o := options{security: &security{}}
	flags := flag.NewFlagSet("loadgen", flag.ExitOnError)
	flags.StringVar(&o.broker, "broker", "127.0.0.1:9092", "host:port")
	flags.StringVar(&o.topic, "topic", "load", "topic, or the prefix of the topics PREFIX-0, PREFIX-1, ...")
	flags.IntVar(&o.partitions, "partitions", 1, "partitions of the topic")
	flags.IntVar(&o.connections, "connections", 1, "connections at once")
	flags.IntVar(&o.depth, "depth", 16, "requests in flight on each connection")
	flags.Float64Var(&o.seconds, "seconds", 5, "how long to send")
	flags.IntVar(&o.rate, "rate", 5000, "records per second")
	flags.Float64Var(&o.gib, "gib", 1, "how much to fetch")
	flags.IntVar(&o.count, "count", 100, "how many requests to send one after the other")
	flags.IntVar(&o.topics, "topics", 1, "how many topics PREFIX-0, PREFIX-1, ... to ask for at once")
	flags.IntVar(&o.valueBytes, "value-bytes", 100, "size of a record's value")
	flags.IntVar(&o.acks, "acks", -1, "as in Produce")
	flags.StringVar(&o.versions, "versions", "12", "Produce versions, sent in turn")
	flags.IntVar(&o.valueMin, "value-min", 20, "smallest value of a mixture")
	flags.IntVar(&o.valueMax, "value-max", 4096, "largest value of a mixture")
	flags.IntVar(&o.perRequest, "per-request", 1, "partitions in each request of a mixture")
	flags.BoolVar(&o.idempotent, "idempotent", false, "producers of a mixture have ids and sequences")
	flags.StringVar(&o.kind, "kind", "heartbeat", "heartbeat, list-offsets or poll")
	flags.IntVar(&o.network, "network", 100, "clients of connect have addresses in 127.NETWORK.0.0/16")
	flags.StringVar(&o.security.authority, "authority", "", "file with the authority of the broker's certificate: use TLS")
	flags.StringVar(&o.security.certificate, "certificate", "", "file with the client's private key and certificate")
	flags.StringVar(&o.security.tlsVersion, "tls-version", "1.3", "1.2 or 1.3")
	flags.StringVar(&o.security.user, "user", "", "user to log in with, by "+scramMechanism)
	flags.StringVar(&o.security.password, "password", "", "password of the user")
	check(flags.Parse(arguments))
	o.security.load(o.broker)
	return o
}

// produce keeps depth one-record requests in flight on every connection.
func produce(o options) map[string]float64 {
	var done atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	deadline := start.Add(time.Duration(o.seconds * float64(time.Second)))
	for index := range o.connections {
		all.Add(1)
		go func() {
			defer all.Done()
			frame := produceRequest(o.topic, int32(index%o.partitions), int16(o.acks), oneRecord(o.valueBytes))
			done.Add(pipeline(o.dial(), frame, o.depth, deadline))
		}()
	}
	all.Wait()
	return map[string]float64{"requests_per_s": float64(done.Load()) / time.Since(start).Seconds()}
}

func pipeline(c *connection, frame []byte, depth int, deadline time.Time) int64 {
	return pipelined(c, frame, depth, deadline, c.checkProduced)
}

// pipelined sends until the deadline and gives the number of answers. It refills
// half of the depth at a time, in one write, so that system calls are few.
func pipelined(c *connection, frame []byte, depth int, deadline time.Time, check func(response)) int64 {
	half := max(depth/2, 1)
	var several []byte
	for range half {
		several = append(several, frame...)
	}
	var sent, received int64
	for time.Now().Before(deadline) {
		for sent-received+int64(half) <= int64(depth) {
			c.send(several)
			sent += int64(half)
		}
		for range half {
			check(c.receive())
			received++
		}
	}
	for ; received < sent; received++ {
		check(c.receive())
	}
	return received
}

// latency sends one-record requests at a fixed rate, over the connections in turn, and measures each
// from the moment it was due, so that a broker that stalls is not spared what was due meanwhile.
func latency(o options) map[string]float64 {
	connections := make([]*connection, o.connections)
	for index := range connections {
		connections[index] = o.dial()
	}
	count := int(o.seconds * float64(o.rate))
	interval := time.Second / time.Duration(o.rate)
	start := time.Now().Add(10 * time.Millisecond)
	due := func(index int) time.Time { return start.Add(time.Duration(index) * interval) }
	taken := make([]time.Duration, count)
	var all sync.WaitGroup
	for first, c := range connections {
		all.Add(1)
		go func() {
			defer all.Done()
			for index := first; index < count; index += len(connections) {
				c.checkProduced(c.receive())
				taken[index] = time.Since(due(index))
			}
		}()
	}
	frame := produceRequest(o.topic, 0, int16(o.acks), oneRecord(o.valueBytes))
	sleepExactly()
	for index := range count {
		waitUntil(due(index))
		connections[index%len(connections)].send(frame)
	}
	all.Wait()
	slices.Sort(taken)
	return map[string]float64{"p50_us": percentile(taken, 0.50), "p99_us": percentile(taken, 0.99)}
}

// sleepExactly lets the calling goroutine, and no other, use its thread from now on, whose sleeps end within some 30
// microseconds. Go's own timers may be a millisecond late, and waiting in a loop would take one of few cores from the
// broker.
func sleepExactly() {
	runtime.LockOSThread()
	const slackNanoseconds = 1
	_, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, slackNanoseconds, 0)
	if failed != 0 {
		check(failed)
	}
}

func waitUntil(due time.Time) {
	for wait := time.Until(due); wait > 0; wait = time.Until(due) {
		interval := syscall.NsecToTimespec(wait.Nanoseconds())
		_ = syscall.Nanosleep(&interval, nil) // a signal may end it early
	}
}

func percentile(sorted []time.Duration, share float64) float64 {
	return float64(sorted[int(share*float64(len(sorted)-1))].Nanoseconds()) / 1000
}

// fetch reads the topic's first partition from its beginning, again and again, without decoding records.
func fetch(o options) map[string]float64 {
	c := o.dial()
	wanted := int64(o.gib * (1 << 30))
	start := time.Now()
	var sizeBytes, offset int64
	for sizeBytes < wanted {
		records, highWatermark := fetched(c.call(fetchRequest(o.topic, 0, offset, 1<<20)))
		sizeBytes += int64(len(records))
		if offset = nextOffset(records); offset >= highWatermark {
			offset = 0
		}
	}
	gib := float64(sizeBytes) / (1 << 30)
	return map[string]float64{"gib": gib, "gib_per_s": gib / time.Since(start).Seconds()}
}

func create(o options) map[string]float64 {
	c := o.dial()
	start := time.Now()
	for index := range o.count {
		checkCreated(c.call(createTopicRequest(fmt.Sprintf("%s-%d", o.topic, index), int32(o.partitions))))
	}
	return map[string]float64{"creates_per_s": float64(o.count) / time.Since(start).Seconds()}
}

func remove(o options) map[string]float64 {
	c := o.dial()
	for index := range o.count {
		checkDeleted(c.call(deleteTopicRequest(fmt.Sprintf("%s-%d", o.topic, index))))
	}
	return map[string]float64{"deleted": float64(o.count)}
}

func metadata(o options) map[string]float64 {
	return repeated(o, metadataRequest(), func(response) {})
}

// describe asks for all configs of many topics in one request.
func describe(o options) map[string]float64 {
	return repeated(o, describeConfigsRequest(o.topic, o.topics), func(r response) { checkDescribed(r, o.topics) })
}

// repeated sends one request again and again and gives the median time to its answer, and the answer's size.
func repeated(o options, frame []byte, check func(response)) map[string]float64 {
	c := o.dial()
	taken := make([]time.Duration, o.count)
	sizeBytes := 0
	for index := range taken {
		start := time.Now()
		answer := c.call(frame)
		taken[index] = time.Since(start)
		check(answer)
		sizeBytes = len(answer)
	}
	slices.Sort(taken)
	return map[string]float64{"median_us": percentile(taken, 0.50), "answer_bytes": float64(sizeBytes)}
}

// alter sets one config of a topic to ever new values, one request after the other.
func alter(o options) map[string]float64 {
	c := o.dial()
	start := time.Now()
	for index := range o.count {
		value := fmt.Sprint(3_600_000 + time.Now().UnixNano()%1_000_000_000 + int64(index))
		checkAltered(c.call(alterConfigRequest(o.topic, "retention.ms", value)))
	}
	return map[string]float64{"alters_per_s": float64(o.count) / time.Since(start).Seconds()}
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "loadgen:", err)
	os.Exit(1)
}
