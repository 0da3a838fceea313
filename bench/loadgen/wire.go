package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
)

// The APIs that are loaded, at the newest version that names topics instead of giving their ids.
const (
	produceKey, produceVersion           = 0, 12
	fetchKey, fetchVersion               = 1, 12
	metadataKey, metadataVersion         = 3, 12
	createTopicsKey, createTopicsVersion = 19, 7
	deleteTopicsKey, deleteTopicsVersion = 20, 5
	describeKey, describeVersion         = 32, 4
	alterKey, alterVersion               = 44, 1
)

// message builds requests; every method appends one field of the flexible encoding.
type message []byte

func (m *message) int8(value int8)   { *m = append(*m, byte(value)) }
func (m *message) int16(value int16) { *m = binary.BigEndian.AppendUint16(*m, uint16(value)) }
func (m *message) int32(value int32) { *m = binary.BigEndian.AppendUint32(*m, uint32(value)) }
func (m *message) int64(value int64) { *m = binary.BigEndian.AppendUint64(*m, uint64(value)) }
func (m *message) count(count int)   { *m = binary.AppendUvarint(*m, uint64(count+1)) }
func (m *message) null()             { *m = append(*m, 0) }
func (m *message) noTags()           { *m = append(*m, 0) }

func (m *message) text(value string) {
	m.count(len(value))
	*m = append(*m, value...)
}

func (m *message) bytes(value []byte) {
	m.count(len(value))
	*m = append(*m, value...)
}

// request begins a framed message: size (filled in by frame), header version 2.
func request(key, version int16) message {
	m := message(make([]byte, 4, 512))
	m.int16(key)
	m.int16(version)
	m.int32(0)
	m.int16(4)
	m = append(m, "load"...)
	m.noTags()
	return m
}

func (m message) frame() []byte {
	binary.BigEndian.PutUint32(m, uint32(len(m)-4))
	return m
}

// response reads fields in order from a frame that has been read in full.
type response []byte

func (r *response) skip(sizeBytes int) { *r = (*r)[sizeBytes:] }

func (r *response) int16() int16 {
	value := int16(binary.BigEndian.Uint16(*r))
	r.skip(2)
	return value
}

func (r *response) length() int {
	value, sizeBytes := binary.Uvarint(*r)
	r.skip(sizeBytes)
	return int(value) - 1
}

func (r *response) text() { r.skip(r.length()) }

// connection is one socket and what is buffered of its answers.
type connection struct {
	socket     net.Conn
	reader     *bufio.Reader
	frame      []byte
	lastOffset int64
}

func newConnection(socket net.Conn, bufferBytes int) *connection {
	return &connection{socket: socket, reader: bufio.NewReaderSize(socket, bufferBytes), lastOffset: -1}
}

func (c *connection) send(frame []byte) {
	_, err := c.socket.Write(frame)
	check(err)
}

// receive gives the next answer behind its header version 1; it is valid until the next call.
func (c *connection) receive() response { return c.receiveAll()[5:] }

// receiveAll gives the next answer, header included; it is valid until the next call.
func (c *connection) receiveAll() response {
	var size [4]byte
	_, err := io.ReadFull(c.reader, size[:])
	check(err)
	sizeBytes := int(binary.BigEndian.Uint32(size[:]))
	if sizeBytes > cap(c.frame) {
		c.frame = make([]byte, sizeBytes)
	}
	c.frame = c.frame[:sizeBytes]
	_, err = io.ReadFull(c.reader, c.frame)
	check(err)
	return response(c.frame)
}

func (c *connection) call(frame []byte) response {
	c.send(frame)
	return c.receive()
}

func produceRequest(topic string, partition int32, acks int16, batch []byte) []byte {
	m := request(produceKey, produceVersion)
	m.null()
	m.int16(acks)
	m.int32(30_000)
	m.count(1)
	m.text(topic)
	m.count(1)
	m.int32(partition)
	m.bytes(batch)
	m.noTags()
	m.noTags()
	m.noTags()
	return m.frame()
}

// checkProduced fails unless the record was appended behind the last one of this connection.
func (c *connection) checkProduced(r response) {
	offset := produced(r)
	if offset <= c.lastOffset {
		fail(fmt.Errorf("Produce told offset %d after %d", offset, c.lastOffset))
	}
	c.lastOffset = offset
}

// produced gives the base offset that a Produce answer tells for its only partition.
func produced(r response) int64 {
	r.length()
	r.text()
	r.length()
	r.skip(4)
	refuse("Produce", r.int16())
	return int64(binary.BigEndian.Uint64(r))
}

// oneRecord is a RecordBatch version 2 with one record: no key, no headers.
func oneRecord(valueSizeBytes int) []byte {
	record := message{0, 0, 0}
	record = binary.AppendVarint(record, -1)
	record = binary.AppendVarint(record, int64(valueSizeBytes))
	record = append(record, make([]byte, valueSizeBytes)...)
	record = append(record, 0)
	var body message
	body.int16(0)
	body.int32(0)
	now := time.Now().UnixMilli()
	body.int64(now)
	body.int64(now)
	body.int64(-1)
	body.int16(-1)
	body.int32(-1)
	body.int32(1)
	body = append(binary.AppendVarint(body, int64(len(record))), record...)
	var batch message
	batch.int64(0)
	batch.int32(int32(9 + len(body)))
	batch.int32(-1)
	batch.int8(2)
	batch.int32(int32(crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))))
	return append(batch, body...)
}

func fetchRequest(topic string, partition int32, offset int64, maxBytes int32) []byte {
	m := request(fetchKey, fetchVersion)
	m.int32(-1)
	m.int32(500)
	m.int32(1)
	m.int32(maxBytes)
	m.int8(0)
	m.int32(0)
	m.int32(-1)
	m.count(1)
	m.text(topic)
	m.count(1)
	m.int32(partition)
	m.int32(-1)
	m.int64(offset)
	m.int32(-1)
	m.int64(-1)
	m.int32(maxBytes)
	m.noTags()
	m.noTags()
	m.count(0)
	m.text("")
	m.noTags()
	return m.frame()
}

// fetched gives the record bytes and the high watermark of the only partition in a Fetch answer.
func fetched(r response) ([]byte, int64) {
	r.skip(4)
	refuse("Fetch", r.int16())
	r.skip(4)
	r.length()
	r.text()
	r.length()
	r.skip(4)
	refuse("Fetch", r.int16())
	highWatermark := int64(binary.BigEndian.Uint64(r))
	r.skip(24)
	if aborted := r.length(); aborted > 0 {
		fail(fmt.Errorf("%d aborted transactions in a topic without transactions", aborted))
	}
	r.skip(4)
	sizeBytes := r.length()
	return r[:max(sizeBytes, 0)], highWatermark
}

// nextOffset is the offset behind the last whole batch.
func nextOffset(records []byte) int64 {
	var next int64
	for len(records) >= 61 {
		batchSizeBytes := 12 + int(binary.BigEndian.Uint32(records[8:]))
		if batchSizeBytes > len(records) {
			break
		}
		next = int64(binary.BigEndian.Uint64(records)) + int64(binary.BigEndian.Uint32(records[23:])) + 1
		records = records[batchSizeBytes:]
	}
	return next
}

func createTopicRequest(topic string, partitions int32) []byte {
	m := request(createTopicsKey, createTopicsVersion)
	m.count(1)
	m.text(topic)
	m.int32(partitions)
	m.int16(1)
	m.count(0)
	m.count(0)
	m.noTags()
	m.int32(60_000)
	m.int8(0)
	m.noTags()
	return m.frame()
}

func checkCreated(r response) {
	r.skip(4)
	r.length()
	r.text()
	r.skip(16)
	refuse("CreateTopics", r.int16())
}

func deleteTopicRequest(topic string) []byte {
	m := request(deleteTopicsKey, deleteTopicsVersion)
	m.count(1)
	m.text(topic)
	m.int32(60_000)
	m.noTags()
	return m.frame()
}

func checkDeleted(r response) {
	r.skip(4)
	r.length()
	r.text()
	refuse("DeleteTopics", r.int16())
}

// metadataRequest asks for every topic.
func metadataRequest() []byte {
	m := request(metadataKey, metadataVersion)
	m.null()
	m.int8(0)
	m.int8(0)
	m.noTags()
	return m.frame()
}

const topicResource = 2

// describeConfigsRequest asks for all configs of the topics PREFIX-0, PREFIX-1, ...
func describeConfigsRequest(prefix string, topics int) []byte {
	m := request(describeKey, describeVersion)
	m.count(topics)
	for index := range topics {
		m.int8(topicResource)
		m.text(fmt.Sprintf("%s-%d", prefix, index))
		m.null()
		m.noTags()
	}
	m.int8(0)
	m.int8(0)
	m.noTags()
	return m.frame()
}

func checkDescribed(r response, topics int) {
	r.skip(4)
	if count := r.length(); count != topics {
		fail(fmt.Errorf("DescribeConfigs told of %d topics, %d were asked for", count, topics))
	}
	refuse("DescribeConfigs", r.int16())
}

func alterConfigRequest(topic, key, value string) []byte {
	m := request(alterKey, alterVersion)
	m.count(1)
	m.int8(topicResource)
	m.text(topic)
	m.count(1)
	m.text(key)
	m.int8(0)
	m.text(value)
	m.noTags()
	m.noTags()
	m.int8(0)
	m.noTags()
	return m.frame()
}

func checkAltered(r response) {
	r.skip(4)
	r.length()
	refuse("IncrementalAlterConfigs", r.int16())
}

func refuse(api string, errorCode int16) {
	if errorCode != 0 {
		fail(fmt.Errorf("%s answered error %d", api, errorCode))
	}
}
