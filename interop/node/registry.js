// KafkaJS's client of schema registries as a JSON-lines program: node registry.js REGISTRY-URL HOST:PORT. It logs in to
// the registry if the environment says so.
'use strict'

const { SchemaRegistry } = require('@kafkajs/confluent-schema-registry')
const { Kafka, logLevel } = require('kafkajs')
const { serve } = require('./lines')

const [host, broker] = process.argv.slice(2)
const { INTEROP_USER: username, INTEROP_PASSWORD: password } = process.env
const auth = username && { username, password }
const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })

// a client for one command: it would remember what it has read
const registryFor = (schema) => {
  const options = schema?.message && { PROTOBUF: { messageName: schema.message } }
  return new SchemaRegistry({ host, auth, retry: { retries: 0 } }, options)
}

const confluent = ({ type, text, references }) => ({ type, schema: text, references })

const register = async ({ subject, schema, level }) => {
  const { id } = await registryFor(schema).register(confluent(schema), { subject, compatibility: level })
  return id
}

// registers a schema and sends one value; the result is the id
const produce = async ({ topic, schema, value }) => {
  const registry = registryFor(schema)
  const { id } = await registry.register(confluent(schema), { subject: `${topic}-value` })
  const data = await registry.encode(id, JSON.parse(value))
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value: data }] })
  await producer.disconnect()
  return id
}

// reads values with the schemas of their ids
const consume = async ({ topic, count, schema }) => {
  const registry = registryFor(schema)
  const consumer = kafka.consumer({ groupId: `readers-of-${topic}` })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const values = []
  try {
    return await new Promise((resolve, reject) => {
      const eachMessage = async ({ message }) => {
        try {
          values.push(await registry.decode(message.value))
        } catch (error) {
          reject(error)
        }
        if (values.length === count) resolve(values)
      }
      consumer.run({ eachMessage }).catch(reject)
    })
  } finally {
    await consumer.disconnect()
  }
}

serve({
  register,
  produce,
  consume,
  look_up: ({ subject, schema }) => registryFor().getRegistryIdBySchema(subject, confluent(schema)),
  latest: ({ subject }) => registryFor().getLatestSchemaId(subject),
  version: ({ subject, version }) => registryFor().getRegistryId(subject, version),
})
