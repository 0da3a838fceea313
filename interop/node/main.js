// KafkaJS as a JSON-lines program: node main.js HOST:PORT. Its consumer always
// joins a group, so this program has no consume command but those of a member.
'use strict'

const fs = require('node:fs')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
const LZ4 = require('kafkajs-lz4')
const Snappy = require('kafkajs-snappy')
const { ZstdCodec } = require('zstd-codec')
const { serve } = require('./lines')

const { INTEROP_MECHANISM: mechanism, INTEROP_USER: username, INTEROP_PASSWORD: password } = process.env
const sasl = mechanism && { mechanism: mechanism.toLowerCase(), username, password }
const { INTEROP_AUTHORITY: authority, INTEROP_KEYSTORE: keystore } = process.env
const pem = (path) => path && fs.readFileSync(path)
const ssl = authority && { ca: pem(authority), key: pem(keystore), cert: pem(keystore) }
// by default, the fifth and last retry comes after ten seconds
const retry = process.env.INTEROP_PATIENCE_S && { retries: 1 }
const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING, sasl, ssl, retry })
const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const zstd = async () => {
  const { Simple } = await new Promise((resolve) => ZstdCodec.run(resolve))
  return { compress: async (encoder) => Buffer.from(new Simple().compress(encoder.buffer)) }
}

CompressionCodecs[CompressionTypes.Snappy] = Snappy
CompressionCodecs[CompressionTypes.LZ4] = new LZ4().codec
CompressionCodecs[CompressionTypes.ZSTD] = () => ({ compress: async (encoder) => (await zstd()).compress(encoder) })

const withAdmin = (operation) => async (command) => {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return (await operation(admin, command)) ?? null
  } finally {
    await admin.disconnect()
  }
}

const metadata = async (admin, { topic }) => {
  const { topics } = await admin.fetchTopicMetadata(topic ? { topics: [topic] } : undefined)
  const { brokers } = await admin.describeCluster()
  const partitions = ({ name, partitions }) => [name, partitions.map((each) => each.partitionId).sort((a, b) => a - b)]
  return {
    brokers: brokers.map(({ host, port }) => `${host}:${port}`),
    topics: Object.fromEntries(topics.map(partitions)),
  }
}

const createTopic = async (admin, { topic, partitions, configs }) => {
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  const created = await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }] })
  // KafkaJS turns this one error into false
  if (!created) throw Object.assign(new Error(`createTopics gave false for ${topic}`), { type: 'false' })
}

const describe = async (admin, type, name) => {
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name }] })
  return Object.fromEntries(resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]))
}

const replaceTopicConfigs = async (admin, { topic, configs }) => {
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
  })
}

const offsets = async (admin, { topic, partition }) => {
  const found = (await admin.fetchTopicOffsets(topic)).find((each) => each.partition === partition)
  return { earliest: Number(found.low), latest: Number(found.high) }
}

// where no record is at or after the timestamp, KafkaJS gives the end of the partition
const offsetAt = async (admin, { topic, partition, timestamp }) => {
  const { latest } = await offsets(admin, { topic, partition })
  const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
  const offset = Number(found.find((each) => each.partition === partition).offset)
  return offset === latest ? null : offset
}

// deleteTopicRecords finds the leader only after another call has loaded the topic's metadata
const deleteRecords = async (admin, { topic, partition, before }) => {
  await offsets(admin, { topic, partition })
  await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
  return (await offsets(admin, { topic, partition })).earliest
}

const headersOf = (pairs) => {
  const headers = {}
  for (const [name, value] of pairs ?? []) (headers[name] ??= []).push(value)
  return headers
}

const produce = async ({ topic, partition, records, codec, idempotent }) => {
  const producer = kafka.producer({ idempotent })
  await producer.connect()
  try {
    const messages = records.map(({ key, value, headers, timestamp }) => ({
      key, value, partition,
      headers: headersOf(headers),
      timestamp: timestamp == null ? undefined : String(timestamp),
    }))
    const [{ baseOffset }] = await producer.send({ topic, messages, compression: codecs[codec] })
    return messages.map((_, index) => Number(baseOffset) + index)
  } finally {
    await producer.disconnect()
  }
}

const transact = async ({ topic, partition, records, transactional_id: transactionalId, commit }) => {
  const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  try {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: records.map(({ key, value }) => ({ key, value, partition })) })
    await (commit ? transaction.commit() : transaction.abort())
    return null
  } finally {
    await producer.disconnect()
  }
}

// a member of a group beside the commands
let member

const joinGroup = async ({ topic, group }) => {
  const consumer = kafka.consumer({ groupId: group, heartbeatInterval: 200 })
  member = { consumer, partitions: [], values: [] }
  const mine = member
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { mine.partitions = payload.memberAssignment[topic] ?? [] })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => { mine.values.push(message.value.toString()) } })
  return null
}

const membership = async () => ({ partitions: [...member.partitions].sort((a, b) => a - b), values: member.values })

const leaveGroup = () => member.consumer.disconnect().then(() => null)

serve({
  metadata: withAdmin(metadata),
  create_topic: withAdmin(createTopic),
  delete_topic: withAdmin((admin, { topic }) => admin.deleteTopics({ topics: [topic] })),
  create_partitions: withAdmin((admin, { topic, count }) =>
    admin.createPartitions({ topicPartitions: [{ topic, count }] }).then(() => null)),
  topic_configs: withAdmin((admin, { topic }) => describe(admin, ConfigResourceTypes.TOPIC, topic)),
  broker_configs: withAdmin((admin, { broker }) => describe(admin, ConfigResourceTypes.BROKER, String(broker))),
  replace_topic_configs: withAdmin(replaceTopicConfigs),
  offsets: withAdmin(offsets),
  offset_at: withAdmin(offsetAt),
  delete_records: withAdmin(deleteRecords),
  produce,
  transact,
  join_group: joinGroup,
  membership,
  leave_group: leaveGroup,
})
