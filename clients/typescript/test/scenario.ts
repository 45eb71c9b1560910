/**
 * One scenario of the clients' table (test/clients/scenarios.ts), played by this client against the server that
 * ERRAND_BASE_URL names: `node scenario.ts NAME` prints what came of it, as JSON.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import * as lib from '../src/index.ts'
import { saveFiles } from '../src/node.ts'

const errand = new lib.Errand({ timeoutMs: 20_000 })
const { interactions, agents, skills, credentials, files } = errand

function told(error: lib.ErrandError): object {
  if (!(error instanceof lib.ApiError)) return { error: error.name }
  const { name, code, status, param, interactionId, retryable } = error
  return { error: name, code, status, param, failed: interactionId !== undefined, retryable }
}

async function caught(action: () => Promise<unknown>): Promise<unknown> {
  try {
    await action()
    return 'nothing was thrown'
  } catch (error) {
    return error instanceof lib.ErrandError ? told(error) : String(error)
  }
}

async function readAll(stream: lib.InteractionStream) {
  const events: lib.StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return {
    ids: events.map(({ id }) => id),
    names: [...new Set(events.map(({ event }) => event as string))],
    text: events.map((event) => (event.event === 'partial_output' ? event.data.text : '')).join(''),
    last: events.at(-1)?.event,
  }
}

/** The methods that take neither an id nor a file. All others are called, so that a new one can't be forgotten. */
const WITHOUT_ID = /^(interactions\.(create|start|stream)|skills\.upload|(agents|credentials)\.create|\w+\.list)$/

function* methodsWithIds(): Generator<[string, (id: unknown) => unknown]> {
  for (const [name, resource] of Object.entries({ interactions, agents, skills, credentials, files })) {
    for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(resource))) {
      const full = `${name}.${method}`
      if (method === 'constructor' || WITHOUT_ID.test(full)) continue
      yield [full, (id) => (resource as unknown as Record<string, (id: unknown) => unknown>)[method]!(id)]
    }
  }
}

/** The message of the ErrandError that it throws or rejects with; undefined if it does neither. */
async function refusalOf(action: () => unknown): Promise<string | undefined> {
  try {
    await action()
    return undefined
  } catch (error) {
    return error instanceof lib.ErrandError ? error.message : `not an ErrandError: ${error}`
  }
}

const SCENARIOS: Record<string, () => Promise<unknown>> = {
  async create() {
    const { status, output, executionTrace, usage } = await interactions.create({
      instruction: '[works]',
      tools: ['code_execution'],
    })
    return { status, output, steps: executionTrace.map(({ type }) => type), counted: usage.input_tokens > 0 }
  },
  stream: () => readAll(interactions.stream({ instruction: '[works]', tools: ['code_execution'] })),
  async text() {
    let text = ''
    for await (const part of interactions.stream({ instruction: '[speaks]' }).text()) text += part
    return text
  },
  async final() {
    const stream = interactions.stream({ instruction: '[speaks]' })
    const { output, interactionId } = await stream.final()
    return { output, same: interactionId === stream.interactionId, last: stream.lastEventId > 0 }
  },
  async events() {
    const { interactionId } = await interactions.create({ instruction: '[speaks]' })
    const all = await readAll(interactions.events(interactionId))
    const rest = await readAll(interactions.events(interactionId, { after: 2 }))
    return { all: all.ids.length, rest: rest.ids, text: all.text }
  },
  'stream-cut': () => readAll(interactions.stream({ instruction: '[works]', tools: ['code_execution'] })),
  'create-cut': async () => (await interactions.create({ instruction: '[works]', tools: ['code_execution'] })).output,
  restart: () => readAll(interactions.stream({ instruction: '[slow tool]', tools: ['code_execution'] })),
  'answer-lost': async () => (await interactions.create({ instruction: '[speaks]' })).output,
  'answer-cut': async () => (await interactions.create({ instruction: '[speaks]' })).output,
  'start-refused': async () => (await interactions.start({ instruction: '[speaks]' })).status,
  'retry-429': async () => (await agents.retrieve('analyst')).id,
  'retry-503': async () => (await agents.create({ id: 'after-503' })).id,
  'proxy-502': async () => (await agents.retrieve('analyst')).id,
  'no-repeat': () => caught(() => agents.create({ displayName: 'Once' })),
  'give-up': () => caught(() => agents.retrieve('analyst', { maxRetries: 1 })),
  'other-server': async () => ({
    call: await caught(() => agents.retrieve('analyst', { maxRetries: 0 })),
    stream: await caught(() => interactions.create({ instruction: '[speaks]' }, { maxRetries: 0 })),
  }),
  'time-out': () => caught(() => agents.retrieve('analyst', { timeoutMs: 1000, maxRetries: 0 })),
  'error-invalid': () => caught(() => interactions.create({} as lib.InteractionRequest)),
  'error-key': () =>
    caught(() => new lib.Errand({ apiKey: 'errand_sk_no' }).agents.list()[Symbol.asyncIterator]().next()),
  'error-not-found': () => caught(() => interactions.create({ instruction: 'x', agentId: 'nobody' })),
  async 'error-classes'() {
    const names: unknown[] = []
    for (;;) {
      const thrown = await caught(() => agents.retrieve('analyst', { maxRetries: 0 }))
      if (typeof thrown === 'string') return names
      names.push((thrown as { error: string }).error)
    }
  },
  'error-conflict': () => caught(() => agents.create({ id: 'analyst' })),
  'error-etag': () => caught(() => agents.update('analyst', { description: 'x' }, { etag: '"old"' })),
  async 'error-idempotency'() {
    const options = { idempotencyKey: `key-${Date.now()}` }
    const [first, second] = [
      await interactions.start({ instruction: '[speaks]' }, options),
      await interactions.start({ instruction: '[speaks]' }, options),
    ]
    return {
      same: first.interactionId === second.interactionId,
      other: await caught(() => interactions.start({ instruction: '[works]' }, options)),
    }
  },
  'error-strict': () =>
    caught(() => interactions.create({ instruction: '[speaks]', skills: ['none'] }, { strict: true })),
  'error-cancel': () =>
    caught(async () => interactions.cancel((await interactions.create({ instruction: '[speaks]' })).interactionId)),
  'run-fails': () => caught(() => interactions.create({ instruction: '[fails]' })),
  async 'run-fails-retryably'() {
    const options = { idempotencyKey: `key-${Date.now()}` }
    let failed: unknown
    const first = await caught(() =>
      interactions.create({ instruction: '[flaky]' }, options).catch((error) => {
        failed = error.interactionId
        throw error
      }),
    )
    const { output, retryOf } = await interactions.create({ instruction: '[flaky]' }, options)
    return { first, second: { output, replaces: retryOf === failed } }
  },
  async 'stream-fails'() {
    const stream = interactions.stream({ instruction: '[fails]' })
    const { names, last } = await readAll(stream)
    return { error: names.includes('error'), last, final: await caught(() => stream.final()) }
  },
  'run-deadline': () => caught(() => interactions.create({ instruction: '[silent]', policy: { maxTurnDuration: 1 } })),
  async cancel() {
    const { interactionId } = await interactions.start({ instruction: '[silent]' })
    const { status } = await interactions.cancel(interactionId)
    return { status, waited: (await interactions.wait(interactionId)).status }
  },
  async 'abort-goes-on'() {
    const abort = new AbortController()
    const stream = interactions.stream({ instruction: '[silent]' }, { signal: abort.signal })
    const error = await caught(async () => {
      for await (const _ of stream) abort.abort()
    })
    const { status } = await interactions.retrieve(stream.interactionId!)
    await interactions.cancel(stream.interactionId!)
    return { error, status }
  },
  async 'abort-cancels'() {
    const abort = new AbortController()
    const options = { signal: abort.signal, cancelOnAbort: true }
    const stream = interactions.stream({ instruction: '[silent]' }, options)
    const error = await caught(async () => {
      for await (const _ of stream) abort.abort()
    })
    return { error, status: (await interactions.wait(stream.interactionId!)).status }
  },
  async 'leave-loop'() {
    const stream = interactions.stream({ instruction: '[works]', tools: ['code_execution'] })
    for await (const _ of stream) break
    return (await interactions.wait(stream.interactionId!)).output
  },
  'unknown-event': () => readAll(interactions.stream({ instruction: '[speaks]' })),
  async paging() {
    for (let i = 0; i < 5; i++) await agents.create({ id: `paged-${i}`, labels: { set: 'paging' } })
    const query = { labels: { set: 'paging' }, pageSize: 2, order: 'asc' } as const
    const ids: string[] = []
    for await (const { id } of agents.list(query)) ids.push(id)
    const first = await agents.list(query)
    return { ids, first: first.items.length, more: first.nextPageToken !== undefined }
  },
  async agents() {
    const made = await agents.create({ id: 'story', systemInstruction: 'One.', labels: { a: '1', b: '2' } })
    const changed = await agents.update('story', { systemInstruction: null, labels: { b: null } }, { etag: made.etag })
    const versions: number[] = []
    for await (const { version } of agents.versions('story')) versions.push(version)
    const first = await agents.version('story', 1)
    await agents.delete('story')
    return {
      version: changed.version,
      labels: changed.labels,
      cleared: changed.systemInstruction === undefined,
      versions,
      first: first.systemInstruction,
      gone: await caught(() => agents.retrieve('story')),
    }
  },
  async files() {
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 256)
    const { files: made } = await interactions.create({
      instruction: '[copies]',
      tools: ['code_execution'],
      files: [await lib.inputFile('in.bin', bytes), await lib.inputFile('in.txt', 'Grüße 🙂')],
    })
    const [binary, text] = ['out.bin', 'out.txt'].map((name) => made.find((file) => file.name === name)!)
    return {
      names: made.map(({ name }) => name).sort(),
      same: Buffer.from(await files.download(binary!)).equals(bytes),
      text: await files.text(text!),
    }
  },
  async save() {
    const { files: made } = await interactions.create({ instruction: '[saves]', tools: ['code_execution'] })
    const home = await mkdtemp(join(tmpdir(), 'errand-save-'))
    try {
      const [directory, outside] = [join(home, 'in/side'), join(home, 'outside')]
      await mkdir(outside)
      const paths = await saveFiles(errand, made, directory)
      await symlink(outside, join(directory, 'link'))
      await symlink(join(outside, 'file'), join(directory, 'link.txt'))
      const refused: Record<string, unknown> = {}
      for (const name of JSON.parse(process.env.HOSTILE_NAMES!)) {
        refused[name] = await caught(() =>
          saveFiles(errand, [{ ...made[0]!, name }], directory, { overwrite: !name.startsWith('a.txt') }),
        )
      }
      return {
        saved: paths.map((path) => relative(directory, path)).sort(),
        text: await readFile(join(directory, 'b/c/d.txt'), 'utf8'),
        again: (await saveFiles(errand, made, directory, { overwrite: true })).length,
        refused,
        left: (await readdir(home, { recursive: true })).sort(),
      }
    } finally {
      await rm(home, { recursive: true })
    }
  },
  async 'file-corrupt'() {
    const { files: made } = await interactions.create({ instruction: '[writes]', tools: ['code_execution'] })
    const [file] = made
    // By the same unreliable way.
    const url = file!.url.replace(/^http:\/\/[^/]+/, process.env.ERRAND_BASE_URL!)
    return caught(() => files.download({ ...file!, url }))
  },
  async skills() {
    const zip = Buffer.from(process.env.SKILL_ZIP!, 'base64')
    const { name, version } = await skills.upload(new Uint8Array(zip))
    const again = await skills.upload(new Uint8Array(zip))
    const { text } = await skills.file(name, 'SKILL.md')
    const names: string[] = []
    for await (const skill of skills.list()) names.push(skill.name)
    await skills.delete(name)
    return {
      name,
      again: again.version === version,
      text: text?.includes(name),
      names,
      gone: await caught(() => skills.retrieve(name)),
    }
  },
  async credentials() {
    const made = await credentials.create({
      id: 'tracker',
      type: 'bearer',
      token: 'secret-token',
      allowedHosts: ['a.example'],
    })
    const shown = JSON.stringify(await credentials.retrieve('tracker'))
    await credentials.delete('tracker')
    return {
      id: made.id,
      secret: shown.includes('secret-token'),
      gone: await caught(() => credentials.retrieve('tracker')),
    }
  },
  async list() {
    const { interactionId } = await interactions.create({ instruction: '[speaks]', labels: { set: 'list' } })
    const { items } = await interactions.list({ labels: { set: 'list' }, status: 'completed' })
    await interactions.delete(interactionId)
    return { found: items.length, gone: await caught(() => interactions.retrieve(interactionId)) }
  },
  async 'missing-ids'() {
    const accepted: string[] = []
    const messages: Record<string, string> = {}
    for (const [method, call] of methodsWithIds()) {
      for (const id of [undefined, null, '', ' ', '.', '..', 7, {}, []]) {
        const error = await refusalOf(() => call(id))
        if (!error?.startsWith(`${method}: `)) accepted.push(`${method}(${JSON.stringify(id)}): ${error}`)
      }
      messages[method] = (await refusalOf(() => call(undefined)))!
    }
    return { accepted, methods: Object.keys(messages).sort(), retrieve: messages['interactions.retrieve'] }
  },
  server: async () => (await errand.server()).tools.available.includes('code_execution'),
  async webhook() {
    const { payload, headers, secret } = JSON.parse(process.env.WEBHOOK!)
    const verify = (change: object) => lib.verifyWebhook({ payload, headers, secret, ...change })
    return {
      type: (await verify({})).type,
      bytes: (await verify({ payload: Buffer.from(payload) })).type,
      tampered: await caught(() => verify({ payload: payload.replace('completed', 'cancelled') })),
      unsigned: await caught(() => verify({ headers: {} })),
      old: await caught(() => verify({ toleranceS: -1 })),
      other: await caught(() => verify({ secret: 'whsec_AAAA' })),
    }
  },
}

const name = process.argv[2]!
const scenario = SCENARIOS[name]
if (!scenario) throw new Error(`There is no scenario ${name}.`)
console.log(JSON.stringify(await scenario()))
