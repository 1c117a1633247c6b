// OpenAI's Node client, unchanged: only the address and the key are ours.
import assert from 'node:assert/strict'
import OpenAI, { AzureOpenAI } from 'openai'

const [url, key] = process.argv.slice(-2)
const client = (options = {}) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, ...options })
const user = [{ role: 'user', content: 'hello there' }]
const schema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
}
const tools = [{ type: 'function', function: { name: 'get_weather', parameters: schema } }]
const asksTool = [{ role: 'user', content: 'please call get_weather now' }]
const mark = (name) => `${name}-${process.pid}`
// The same clock as Python's monotonic time on this machine.
const left = (text) => ({ mark: text, left_at: Number(process.hrtime.bigint()) / 1e9 })

async function raised (kind, call) {
  try {
    await call()
  } catch (error) {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`)
    return error
  }
  assert.fail(`${kind.name} was not raised`)
}

export async function chat () {
  const answer = await client().chat.completions.create({ model: 'echo', messages: user })
  assert.ok(answer.choices[0].message.content.endsWith('You said: hello there'))
  assert.equal(answer.choices[0].finish_reason, 'stop')
  assert.ok(answer._request_id)
}

export async function stream () {
  const options = { include_usage: true }
  const chunks = await client().chat.completions.create({ model: 'echo', messages: user, stream: true, stream_options: options })
  let text = ''
  let usage
  for await (const chunk of chunks) {
    text += chunk.choices[0]?.delta.content ?? ''
    usage = chunk.usage ?? usage
  }
  assert.ok(text.endsWith('hello there'))
  assert.ok(usage.total_tokens > 0)
}

export async function stream_helper () {
  const stream = client().chat.completions.stream({ model: 'echo', messages: user })
  assert.ok((await stream.finalContent()).endsWith('hello there'))
}

export async function tools_called () {
  const answer = await client().chat.completions.create({ model: 'echo', messages: asksTool, tools })
  const [call] = answer.choices[0].message.tool_calls
  assert.equal(call.function.name, 'get_weather')
  assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)).sort(), ['city', 'days'])
  const chunks = await client().chat.completions.create({ model: 'echo', messages: asksTool, tools, stream: true })
  let joined = ''
  for await (const chunk of chunks) {
    for (const part of chunk.choices[0].delta.tool_calls ?? []) joined += part.function.arguments ?? ''
  }
  assert.equal(joined, call.function.arguments)
}

export async function structured_output () {
  const format = { type: 'json_schema', json_schema: { name: 'trip', schema, strict: true } }
  const answer = await client().chat.completions.parse({ model: 'echo', messages: user, response_format: format })
  assert.deepEqual(Object.keys(JSON.parse(answer.choices[0].message.content)).sort(), ['city', 'days'])
}

export async function embeddings () {
  const usual = await client().embeddings.create({ model: 'echo', input: ['one', 'two'] })
  assert.deepEqual(usual.data.map((item) => item.embedding.length), [256, 256])
  const plain = await client().embeddings.create({ model: 'echo', input: 'one', encoding_format: 'float' })
  assert.equal(typeof plain.data[0].embedding[0], 'number')
  assert.deepEqual(plain.data[0].embedding.map(Math.fround), Array.from(usual.data[0].embedding, Math.fround))
}

export async function models () {
  const names = []
  for await (const model of client().models.list()) names.push(model.id)
  assert.ok(names.includes('echo'))
  assert.equal((await client().models.retrieve('echo')).id, 'echo')
}

export async function errors () {
  const ask = (model, options = {}) => client().chat.completions.create({ model, messages: user, ...options })
  const kinds = [
    ['nothing', OpenAI.NotFoundError],
    ['refuse-400', OpenAI.BadRequestError],
    ['refuse-409', OpenAI.ConflictError],
    ['refuse-422', OpenAI.UnprocessableEntityError],
    ['refuse-429', OpenAI.RateLimitError],
    ['refuse-500', OpenAI.InternalServerError],
    ['refuse-401', OpenAI.InternalServerError],
  ]
  for (const [model, kind] of kinds) {
    await raised(kind, () => ask(model))
    const error = await raised(kind, () => ask(model, { stream: true }))
    assert.ok(error.requestID)
  }
  const wrong = client({ apiKey: 'wrong-0123456789' })
  const error = await raised(OpenAI.AuthenticationError, () => wrong.chat.completions.create({ model: 'echo', messages: user }))
  assert.equal(error.code, 'invalid_api_key')
}

export async function stream_cut () {
  const seen = []
  const error = await raised(OpenAI.APIError, async () => {
    const chunks = await client().chat.completions.create({ model: 'cut', messages: user, stream: true })
    for await (const chunk of chunks) seen.push(chunk.choices[0].delta.content)
  })
  assert.deepEqual(seen, ['one', 'two'])
  assert.match(error.message, /ended before it was complete/)
}

export async function azure () {
  const given = { endpoint: url, apiKey: key, apiVersion: '2024-06-01', maxRetries: 0 }
  const answer = await new AzureOpenAI(given).chat.completions.create({ model: 'echo', messages: user })
  assert.ok(answer.choices[0].message.content.endsWith('hello there'))
  const deployed = new AzureOpenAI({ ...given, deployment: 'echo' })
  const chunks = await deployed.chat.completions.create({ model: 'ignored', messages: user, stream: true })
  let text = ''
  for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? ''
  assert.ok(text.endsWith('hello there'))
}

export async function leaves_a_stream () {
  const text = mark('node-leaves')
  const chunks = await client().chat.completions.create({ model: 'slow', messages: [{ role: 'user', content: text }], stream: true })
  for await (const chunk of chunks) {
    assert.ok(chunk)
    break
  }
  return left(text)
}

export async function aborts_a_call () {
  const text = mark('node-aborts')
  const control = new AbortController()
  const call = client().chat.completions.create({ model: 'hang', messages: [{ role: 'user', content: text }] }, { signal: control.signal })
  const ended = raised(OpenAI.APIUserAbortError, () => call)
  await new Promise((resolve) => setTimeout(resolve, 200))
  control.abort()
  const told = left(text)
  await ended
  return told
}

export async function runs_out_of_time () {
  const text = mark('node-time')
  const call = () => client({ timeout: 300 }).chat.completions.create({ model: 'hang', messages: [{ role: 'user', content: text }] })
  await raised(OpenAI.APIConnectionTimeoutError, call)
  return left(text)
}

export async function files () {
  const files = client({ defaultHeaders: { 'x-gateway-provider': 'stand' } }).files
  const made = await files.create({ file: new File(['{"a":1}\n'], 'a.jsonl'), purpose: 'batch' })
  assert.equal(made.id, 'file-1')
  assert.equal(await (await files.content('file-1')).text(), '{"a":1}\n')
  assert.equal((await files.delete('file-1')).deleted, true)
}

export async function audio_and_images () {
  const spoken = await client().audio.speech.create({ model: 'any', voice: 'alloy', input: 'hello' })
  assert.equal(Buffer.from(await spoken.arrayBuffer()).subarray(0, 3).toString(), 'ID3')
  const heard = await client().audio.transcriptions.create({ model: 'any', file: new File(['ID3'], 'a.mp3') })
  assert.equal(heard.text, 'heard')
  const drawn = await client().images.edit({ model: 'any', image: new File(['png'], 'a.png'), prompt: 'a dog' })
  assert.ok(drawn.data[0].b64_json)
}
