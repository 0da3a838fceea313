// The form of every client program: a JSON command on each input line, its answer on an output line.
'use strict'

const readline = require('node:readline')

// what went wrong lies at the bottom: a retry or an aggregate wraps the broker's error
const root = (error) => {
  const inner = error.errors?.[0] ?? error.cause
  return inner ? root(inner) : error
}

const answer = async (operations, { do: name, ...command }) => {
  try {
    return { ok: await operations[name](command) }
  } catch (thrown) {
    const error = root(thrown)
    return { error: error.type ?? error.name, message: error.message }
  }
}

const answerAll = async (operations) => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(operations, JSON.parse(line))))
  }
}

// a member that has not left would continue
exports.serve = (operations) => answerAll(operations).then(() => process.exit())
