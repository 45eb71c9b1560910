/**
 * S18: no input chosen by a caller, a model, a tool, an MCP server or a program in a sandbox blocks the event loop of
 * the server, or of the sandbox host, for more than 50 ms of processor time (see event-loops/watched-server.ts).
 */
import { afterAll, beforeAll, test } from 'vitest'
import { hostileText, hostileValue } from '../event-loops/texts.ts'
import { type Attack, startWatchedServer, type WatchedServer } from '../event-loops/watched-server.ts'
import { type FakeProvider, openFakeProvider, type Reply } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type OpenApi, type Operation, openApiOf, resolveIn } from '../support/openapi.ts'
import { rounds, seeded } from '../support/prove.ts'
import { ALL_TOOLS, bash, type Call, python, readFile, scripted, writeFile } from '../support/tool-run.ts'

const SMALL = 10
/** Length of a text in a body, in a tool's output or argument, and in a header or a URL. */
const LONG = 200_000
const LONG_FIELD = 12_000
const JSON_TYPE = 'application/json'
const PATH = '/v1beta/interactions'
const HOUR = 3_600_000

const random = seeded('S18')
let provider: FakeProvider
let mcp: FakeMcp
let server: WatchedServer
let api: OpenApi

beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider({ record: false }), openFakeMcp()])
  provider.when('', () => ({ text: 'Done.' }))
  server = await startWatchedServer(provider, [mcp.address])
  api = await openApiOf(server.url)
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([provider?.close(), mcp?.close()])
})

// ---------------------------------------------------------------- routes

interface Schema {
  readonly $ref?: string
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
}

/** Fields of a body. Each function creates a body with the given value in that field. */
function placesIn(schema: Schema, depth = 0): ((inner: unknown) => unknown)[] {
  if (schema.$ref) return placesIn(resolveIn(api.document, schema.$ref.slice(1)) as Schema, depth)
  const own = (inner: unknown) => inner
  if (depth > 6) return [own]
  const choices = (schema.anyOf ?? schema.oneOf ?? []).flatMap((choice) => placesIn(choice, depth))
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    placesIn(field, depth + 1).map((place) => (inner: unknown) => ({ [name]: place(inner) })),
  )
  const items = schema.items ? placesIn(schema.items, depth + 1).map((place) => (inner: unknown) => [place(inner)]) : []
  const open = schema.additionalProperties
  const keys = open
    ? [(inner: unknown) => ({ [String(inner).slice(0, LONG)]: 'x' }), (inner: unknown) => ({ x: inner })]
    : []
  return [own, ...choices, ...fields, ...items, ...keys]
}

/** A random field of the operation, and a request with the attack's value in it. */
function attackOn(method: string, path: string, { parameters = [], requestBody }: Operation): Attack {
  const schema = requestBody?.content[JSON_TYPE]?.schema as Schema | undefined
  const text = hostileText(random)
  const about = `${method} ${path}`
  if (schema && random.next() < 0.8) {
    const place = random.pick(placesIn(schema))
    const required = { instruction: 'Answer.', background: true }
    const wide = random.next() < 0.3 ? hostileValue(random, 4_000) : undefined
    const body = (inner: unknown) => {
      const made = place(inner)
      return JSON.stringify(typeof made === 'object' && !Array.isArray(made) ? { ...required, ...made } : made)
    }
    const where = body('…')
    return {
      name: `${about}, body ${where}: ${wide?.name ?? text.name}`,
      make: (small) => send(method, path, {}, body(small ? 'x' : wide ? wide.value : text.of(LONG))),
    }
  }
  const places = [...parameters.map(({ name, in: where }) => ({ name, where })), { name: 'cookie', where: 'header' }]
  const { name, where } = random.pick(places)
  return {
    name: `${about}, ${where} ${name}: ${text.name}`,
    make: (small) => send(method, path, { where, name, value: text.of(small ? SMALL : LONG_FIELD) }, undefined),
  }
}

async function send(
  method: string,
  path: string,
  { where, name = '', value = '' }: { where?: string; name?: string; value?: string },
  body: string | undefined,
): Promise<void> {
  const headers: Record<string, string> = { 'x-svc-api-key': server.key }
  if (body !== undefined) headers['content-type'] = JSON_TYPE
  const printable = value.replace(/[^\t\x20-\x7e]/g, '?').trim()
  if (where === 'header') headers[name] = printable
  const encoded = encodeURIComponent(value.toWellFormed()).slice(0, LONG_FIELD)
  const filled = path.replaceAll(/\{([^}]*)\}/g, (_, parameter) =>
    where === 'path' && parameter === name ? encoded : 'x',
  )
  const query = where === 'query' ? `?${name}=${encoded}` : ''
  const response = await fetch(server.url + filled + query, {
    method: method.toUpperCase(),
    headers,
    body: method === 'get' ? undefined : body,
    signal: AbortSignal.timeout(HOUR),
  })
  // Does not wait for streams of unfinished runs.
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) await response.body?.cancel()
  else await response.text()
}

test('no request to a route blocks an event loop', { timeout: HOUR }, async () => {
  const routes = api.operations()
  const count = rounds(4_000, 150)
  const attacks = Array.from({ length: count }, (_, i) => attackOn(...routes[i % routes.length]!))
  await server.judgeAll('routes', attacks)
})

test('no body of the maximum size blocks an event loop', { timeout: HOUR }, async () => {
  const texts = {
    plain: 'x'.repeat(9 * 1024 * 1024),
    'line feeds': '\n'.repeat(950_000),
    quotes: '"'.repeat(950_000),
    'control characters': '\u0001'.repeat(950_000),
    'two-byte characters': 'é'.repeat(4 * 1024 * 1024),
  }
  const attack = ([name, text]: [string, string]): Attack => ({
    name: `two files of ${name}`,
    make(small) {
      const content = small ? 'x' : text
      const body = {
        instruction: 'Answer.',
        background: true,
        files: [
          { name: 'a', content },
          { name: 'b', content },
        ],
      }
      return server.post(PATH, body, { 'idempotency-key': `${random.next()}` })
    },
  })
  await server.judgeAll('large bodies', Object.entries(texts).map(attack))
})

test('no schema of an answer blocks an event loop', { timeout: HOUR }, async () => {
  const many = (count: number, make: (i: number) => unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, make(i)]))
  const schemas: Record<string, (size: number) => object> = {
    'dynamic references': (size) => ({ $dynamicAnchor: 'a', properties: many(size, () => ({ $dynamicRef: '#a' })) }),
    references: (size) => ({
      properties: many(size, (i) => ({ $ref: `#/$defs/p${i}` })),
      $defs: many(size, () => ({})),
    }),
    'unevaluated properties': (size) => ({
      allOf: Array.from({ length: size }, (_, i) => ({ properties: { [`p${i}`]: {} } })),
      unevaluatedProperties: false,
    }),
    types: (size) => ({ properties: many(size, () => ({ type: ['string', 'null'], minLength: 1 })) }),
  }
  const attack = (name: string, schema: (size: number) => object): Attack => ({
    name: `responseFormat: ${name}`,
    make: (small) => {
      // A unique title, because compiled schemas are cached.
      const responseFormat = { title: `${random.next()}`, ...schema(small ? 3 : 1_100) }
      return server.post(PATH, { instruction: 'Answer.', background: true, responseFormat })
    },
  })
  await server.judgeAll(
    'responseFormat',
    Object.entries(schemas).map(([name, schema]) => attack(name, schema)),
  )
})

// ---------------------------------------------------------------- tools, models, MCP servers

function run(calls: readonly Call[], request: object = {}) {
  return server.post(PATH, { instruction: scripted(provider, calls), tools: ALL_TOOLS, ...request })
}

/** A call of Python code that prints the text. */
function printed(text: string): Call {
  return python(`import json; print(json.loads(${JSON.stringify(JSON.stringify(text.toWellFormed()))}))`)
}

function attackByTool(): Attack {
  const text = hostileText(random)
  const make = random.pick<readonly [string, (text: string) => readonly Call[]]>([
    ['printed', (it) => [printed(it.slice(0, 65_000))]],
    ['printed by a step that fails', (it) => [printed(it.slice(0, 65_000)), bash('exit 1')]],
    ['code', (it) => [python(it)]],
    ['a path', (it) => [readFile(it.slice(0, LONG))]],
    ['a pattern', (it) => [writeFile('a', it), { name: 'find', args: { pattern: it.slice(0, 2_000) } }]],
    ['a glob', (it) => [writeFile('a', it), { name: 'find', args: { glob: it.slice(0, 2_000) } }]],
    [
      'a text to edit',
      (it) => [
        writeFile('a', it),
        { name: 'file_write', args: { path: 'a', edits: [{ find: `x${it.slice(0, 65_000)}`, replace: '' }] } },
      ],
    ],
    ['pages', (it) => [readFile('a.pdf', { pages: it })]],
    ['written and read', (it) => [writeFile('a', it), readFile('a')]],
    ['a PDF', (it) => [writeFile('a.pdf', `%PDF-1.4\n${it}`), readFile('a.pdf')]],
    ['an SVG', (it) => [writeFile('a.svg', `<svg ${it}`), readFile('a.svg')]],
    ['another tool', (it) => [{ name: it, args: {} }]],
    ['arguments that are no JSON', (it) => [{ name: 'file_read', args: it }]],
    ['a field of its own', (it) => [{ name: 'file_read', args: { [it]: it } }]],
  ])
  return { name: `tools, ${make[0]}: ${text.name}`, make: (small) => run(make[1](text.of(small ? SMALL : LONG))) }
}

/** Texts to replace that nearly match everywhere. */
const REPLACEMENTS: readonly Attack[] = [
  ['a', `ab${'a'.repeat(10_000)}`],
  ['a', `${'a'.repeat(10_000)}b`],
  ['ab', `${'ab'.repeat(5_000)}b`],
  ['\n', `a${'\n'.repeat(10_000)}`],
].map(([unit, find]) => ({
  name: `file_write, replace ${JSON.stringify(find!.slice(0, 5))}… in ${JSON.stringify(unit)} × n`,
  make: (small) => {
    const fill = python(`open('f', 'w').write(${JSON.stringify(unit)} * ${small ? SMALL : 1_000_000})`)
    return run([fill, writeFile('f', 'x', { mode: 'replace', find: small ? 'ab' : find })])
  },
}))

/** Inputs that blocked the server or the sandbox host in the past. */
const PRINTED: readonly Attack[] = ['\n', '\r\n', 'spawn ', 'pthread_create', 'fork'].map((part) => ({
  name: `printed: ${JSON.stringify(part)} × n`,
  make: (small) =>
    run([
      python(`print(${JSON.stringify(part)} * ${small ? SMALL : Math.floor(60_000 / part.length)} + 'x')`),
      bash('exit 1'),
    ]),
}))

function attackByModel(): Attack {
  const text = hostileText(random)
  const event = (delta: unknown) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
  const [what, reply] = random.pick<readonly [string, (text: string) => Reply]>([
    ['an answer', (it) => ({ text: it })],
    ['reasoning', (it) => ({ reasoning: it, text: 'x' })],
    ['an answer in pieces', (it) => ({ text: it.match(/[\s\S]{1,100}/g) ?? [] })],
    ['bytes that are no events', (it) => ({ raw: it })],
    ['an event without end', (it) => ({ raw: `data: ${it.replaceAll('\n', ' ')}` })],
    ['many lines of one event', (it) => ({ raw: `${'data: \n'.repeat(it.length / 20)}\n\n` })],
    ['content that is no text', (it) => ({ raw: event({ content: [it] }) })],
    ['a finish', (it) => ({ text: 'x', finish: it })],
    ['an error', (it) => ({ fault: 'status:400', errorMessage: it })],
  ])
  return {
    name: `model, ${what}: ${text.name}`,
    make: (small) => {
      const marker = `[model ${random.next()}]`
      provider.when(marker, reply(text.of(small ? SMALL : LONG).toWellFormed()))
      return server.post(PATH, { instruction: marker })
    },
  }
}

function attackByMcp(): Attack {
  const text = hostileText(random)
  const what = random.pick(['a description', 'a schema', 'a result', 'an error', 'a structured result'] as const)
  const secret = random.pick(['a'.repeat(16_000), `${'ab'.repeat(7_000)}c`, 'a-short-token'])
  const plain = { tools: mcp.tools, onCall: mcp.onCall }
  return {
    name: `MCP server, ${what}, a token of ${secret.length} characters: ${text.name}`,
    async make(small) {
      const said = text.of(small ? SMALL : LONG).toWellFormed()
      const tool = { name: 'say', description: 'Says it.', inputSchema: { type: 'object' } }
      if (what === 'a description') mcp.tools = [{ ...tool, description: said }]
      if (what === 'a schema')
        mcp.tools = [{ ...tool, inputSchema: { type: 'object', properties: { a: { pattern: said } } } }]
      mcp.onCall = () => {
        if (what === 'an error') return { isError: true, content: [{ type: 'text', text: said }] }
        if (what === 'a structured result') return { content: [], structuredContent: { said } }
        return said
      }
      try {
        const servers = [{ name: 'm', url: mcp.url, authentication: small ? 'a-token' : secret }]
        await run([{ name: 'm__say', args: {} }], { mcp: servers })
      } finally {
        Object.assign(mcp, plain)
      }
    },
  }
}

test('no tool argument and no result blocks an event loop', { timeout: HOUR }, async () => {
  const count = rounds(1_000, 24)
  await server.judgeAll('tools', [
    ...REPLACEMENTS,

    ...PRINTED,
    ...Array.from({ length: count }, attackByTool),
  ])
})

test('no answer of a model blocks an event loop', { timeout: HOUR }, async () => {
  await server.judgeAll('the wire to models', Array.from({ length: rounds(500, 24) }, attackByModel))
})

test('no response of an MCP server blocks an event loop', { timeout: HOUR }, async () => {
  await server.judgeAll('the wire to MCP servers', Array.from({ length: rounds(500, 16) }, attackByMcp))
})

test('no instruction to the demo model blocks an event loop', { timeout: HOUR }, async () => {
  const attacks = Array.from({ length: rounds(1_000, 30) }, (): Attack => {
    const text = hostileText(random)
    return {
      name: `demo model: ${text.name}`,
      make: (small) =>
        server.post(PATH, { model: 'demo', instruction: text.of(small ? SMALL : 190_000).toWellFormed() }),
    }
  })
  await server.judgeAll('the demo model', attacks)
})
