package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Each connection sends so many different requests in turn: other keys, sizes and versions.
const shapesCount = 256

// Where in a record batch its CRC, what the CRC covers, producer id, and base sequence begin.
const crcAt, coveredAt, producerAt, sequenceAt = 17, 21, 43, 53

const flexibleProduceVersion, topicIDProduceVersion = 9, 13

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shape is a Produce request that is sent again and again.
type shape struct {
	version    int16
	frame      []byte
	partitions []int
	batchAt    []int // where each batch begins in the frame
	batchSize  []int
}

// mixture sends one-record requests as many producers do: keys over all partitions, sizes from value-min to value-max
// (small ones more often), several versions, several partitions in a request, idempotent or not.
func mixture(o options) map[string]float64 {
	var versions []int16
	for _, text := range strings.Split(o.versions, ",") {
		version, err := strconv.Atoi(text)
		check(err)
		versions = append(versions, int16(version))
	}
	id := topicID(o, o.topic)
	var done atomic.Int64
	var all, ready sync.WaitGroup
	ready.Add(o.connections)
	var start, deadline time.Time
	begin := make(chan struct{})
	for index := range o.connections {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(uint64(index), 7))
			producer := &mixedProducer{
				c: o.dial(), idempotent: o.idempotent,
				producerID: time.Now().UnixNano() + int64(index), sequences: make([]int32, o.partitions),
			}
			for number := range shapesCount {
				version := versions[number%len(versions)]
				producer.shapes = append(producer.shapes, newShape(o, version, id, random))
			}
			ready.Done()
			<-begin
			done.Add(producer.run(o.depth, deadline))
		}()
	}
	ready.Wait()
	start = time.Now()
	deadline = start.Add(time.Duration(o.seconds * float64(time.Second)))
	close(begin)
	all.Wait()
	return map[string]float64{
		"requests": float64(done.Load()), "requests_per_s": float64(done.Load()) / time.Since(start).Seconds(),
	}
}

func newShape(o options, version int16, id []byte, random *rand.Rand) *shape {
	s := &shape{version: version, partitions: random.Perm(o.partitions)[:o.perRequest]}
	var batches [][]byte
	for range s.partitions {
		least, most := math.Log(float64(o.valueMin)), math.Log(float64(o.valueMax))
		size := int(math.Exp(least + random.Float64()*(most-least)))
		batches = append(batches, oneRecord(size))
	}
	if version >= flexibleProduceVersion {
		s.flexible(o.topic, id, batches)
	} else {
		s.plain(o.topic, batches)
	}
	return s
}

func (s *shape) add(m *message, batch []byte) {
	s.batchAt, s.batchSize = append(s.batchAt, len(*m)), append(s.batchSize, len(batch))
	*m = append(*m, batch...)
}

func (s *shape) flexible(topic string, id []byte, batches [][]byte) {
	m := request(produceKey, s.version)
	m.null()
	m.int16(-1)
	m.int32(30_000)
	m.count(1)
	if s.version >= topicIDProduceVersion {
		m = append(m, id...)
	} else {
		m.text(topic)
	}
	m.count(len(batches))
	for index, batch := range batches {
		m.int32(int32(s.partitions[index]))
		m.count(len(batch))
		s.add(&m, batch)
		m.noTags()
	}
	m.noTags()
	m.noTags()
	s.frame = m.frame()
}

func (s *shape) plain(topic string, batches [][]byte) {
	m := message(make([]byte, 4, 512))
	m.int16(produceKey)
	m.int16(s.version)
	m.int32(0)
	m.int16(4)
	m = append(m, "load"...)
	m.int16(-1)
	m.int16(-1)
	m.int32(30_000)
	m.int32(1)
	m.int16(int16(len(topic)))
	m = append(m, topic...)
	m.int32(int32(len(batches)))
	for index, batch := range batches {
		m.int32(int32(s.partitions[index]))
		m.int32(int32(len(batch)))
		s.add(&m, batch)
	}
	s.frame = m.frame()
}

type mixedProducer struct {
	c          *connection
	shapes     []*shape
	idempotent bool
	producerID int64
	sequences  []int32
}

// run keeps depth requests in flight. It refills half of them at a time, in one write, as a busy client does.
func (p *mixedProducer) run(depth int, deadline time.Time) int64 {
	half := max(depth/2, 1)
	var sent, received int64
	var several []byte
	for time.Now().Before(deadline) {
		for sent-received+int64(half) <= int64(depth) {
			several = several[:0]
			for range half {
				several = append(several, p.next(sent)...)
				sent++
			}
			p.c.send(several)
		}
		for range half {
			p.receive(received)
			received++
		}
	}
	for ; received < sent; received++ {
		p.receive(received)
	}
	return received
}

func (p *mixedProducer) next(number int64) []byte {
	s := p.shapes[number%int64(len(p.shapes))]
	if p.idempotent {
		for index, partition := range s.partitions {
			batch := s.frame[s.batchAt[index] : s.batchAt[index]+s.batchSize[index]]
			binary.BigEndian.PutUint64(batch[producerAt:], uint64(p.producerID))
			binary.BigEndian.PutUint16(batch[producerAt+8:], 0)
			binary.BigEndian.PutUint32(batch[sequenceAt:], uint32(p.sequences[partition]))
			binary.BigEndian.PutUint32(batch[crcAt:], crc32.Checksum(batch[coveredAt:], castagnoli))
			p.sequences[partition]++
		}
	}
	return s.frame
}

func (p *mixedProducer) receive(number int64) {
	s := p.shapes[number%int64(len(p.shapes))]
	r := p.c.receiveAll()
	r.skip(4)
	flexible := s.version >= flexibleProduceVersion
	if !flexible {
		r.skip(4)
		r.skip(int(r.int16()))
		r.skip(4)
		for range s.partitions {
			r.skip(4)
			refuse("Produce", r.int16())
			r.skip(24)
		}
		return
	}
	r.skip(2)
	if s.version >= topicIDProduceVersion {
		r.skip(16)
	} else {
		r.text()
	}
	r.length()
	for range s.partitions {
		r.skip(4)
		refuse("Produce", r.int16())
		r.skip(27)
	}
}

// topicID asks for the id of a topic.
func topicID(o options, topic string) []byte {
	m := request(metadataKey, metadataVersion)
	m.count(1)
	m = append(m, make([]byte, 16)...)
	m.text(topic)
	m.noTags()
	m.int8(0)
	m.int8(0)
	m.noTags()
	r := o.dial().call(m.frame())
	r.skip(4)
	for brokers := r.length(); brokers > 0; brokers-- {
		r.skip(4)
		r.text()
		r.skip(4)
		r.skip(max(r.length(), 0))
		r.skip(1)
	}
	r.skip(max(r.length(), 0))
	r.skip(4)
	if r.length() != 1 {
		fail(fmt.Errorf("Metadata does not know %s", topic))
	}
	refuse("Metadata", r.int16())
	r.text()
	return append([]byte{}, r[:16]...)
}
