/**
 * S11: requests that the OpenAPI document allows, nearly allows and forbids, to every route and in any order, get
 * documented responses and never a 5xx. Later calls use the ids that earlier calls returned.
 */
import fc, { type Arbitrary } from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import {
  EVERYTHING,
  type OpenApi,
  type Operation,
  openApiOf,
  type Parameter,
  resolveIn,
  unnamed,
} from '../support/openapi.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const CALLS = rounds(20_000, 1_500)
const AT_ONCE = 8
const MAX_DEPTH = 6
/** Number of recent ids from responses that later calls use. */
const REMEMBERED = 60
const JSON_TYPE = 'application/json'

/** Addresses that cannot be resolved or must not be connected to. */
const ADDRESSES = [
  'https://10.0.0.1/x',
  'http://127.0.0.1:1/',
  'https://[::1]/',
  'ftp://10.0.0.1/',
  's3://b/k',
  '//x',
  '',
]
const HOSTILE = [
  '',
  ' ',
  'x',
  'ü🦀',
  '\u0000',
  '../../etc/passwd',
  '__proto__',
  "' OR 1=1 --",
  '%00',
  '{{7*7}}',
  '9'.repeat(40),
]
const STRANGE: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, -1, 0, 1.5, 2 ** 53, 1e308, '', [], {}, [[]], 'x'.repeat(10_000)),
  fc.jsonValue({ maxDepth: 2 }).map(withoutAddresses),
)

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
}

interface Call {
  readonly method: string
  /** The path as in the OpenAPI document. */
  readonly path: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

const random = seeded('S11')
let provider: FakeProvider
let server: Server
let api: OpenApi
const known: string[] = ['nobody', 'int_0000000000000000000000']

beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  provider.when('', () => ({ text: 'Done.' }))
  server = await startServer({
    provider,
    config: { limits: { ...ROOMY, runningPerProject: 10_000, queuedPerProject: 10_000 } },
  })
  api = await openApiOf(server.url, EVERYTHING)
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Values that mostly match the schema. `name`: the field's name. */
function fitting(schema: Schema, name = '', depth = 0): Arbitrary<unknown> {
  if (schema.$ref) return fitting(resolveIn(api.document, schema.$ref.slice(1)) as Schema, name, depth)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return fc.oneof(...choices.map((choice) => fitting(choice, name, depth)))
  if (schema.allOf) return fc.oneof(...schema.allOf.map((part) => fitting(part, name, depth)))
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0]
  switch (type) {
    case 'object':
      return depth > MAX_DEPTH ? fc.constant({}) : objectOf(schema, depth)
    case 'array':
      return fc.array(rarelyStrange(fitting(schema.items ?? {}, name, depth + 1)), { maxLength: 3 })
    case 'string':
      return textFor(name)
    case 'integer':
      return fc.integer({ min: Math.ceil(schema.minimum ?? -1), max: Math.min(schema.maximum ?? 1000, 2 ** 31 - 1) })
    case 'number':
      return fc.double({ min: schema.minimum ?? -1, max: schema.maximum ?? 1000, noNaN: true })
    case 'boolean':
      return fc.boolean()
    default:
      return STRANGE
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: Schema, depth: number): Arbitrary<unknown> {
  const fields = Object.entries(properties).map(([name, schema]) => [
    name,
    rarelyStrange(fitting(schema, name, depth + 1)),
  ])
  const named = fc.record(Object.fromEntries(fields) as Record<string, Arbitrary<unknown>>, {
    requiredKeys: required.filter((name) => name in properties),
  })
  const more =
    typeof additionalProperties === 'object' ? fitting(additionalProperties, '', depth + 1) : fc.constant('x')
  const extra = fc.dictionary(fc.constantFrom(...HOSTILE, 'extra'), more, { maxKeys: 2 })
  return fc
    .tuple(named, extra, fc.integer({ min: 0, max: 9 }))
    .map(([fields, others, chance]) => (chance === 0 || additionalProperties ? { ...others, ...fields } : fields))
}

function rarelyStrange(usual: Arbitrary<unknown>): Arbitrary<unknown> {
  return fc.oneof({ weight: 60, arbitrary: usual }, { weight: 1, arbitrary: STRANGE })
}

function textFor(name: string): Arbitrary<string> {
  if (/url|uri|server|endpoint/i.test(name)) return fc.constantFrom(...ADDRESSES)
  if (/id$|token$|etag/i.test(name)) return fc.oneof(seen(), fc.constantFrom(...HOSTILE))
  return fc.oneof(fc.constantFrom('hi', 'a', 'code_execution', 'svc-3.5-flash', ...HOSTILE), seen())
}

/** A value from an earlier response. */
function seen(): Arbitrary<string> {
  return fc.nat(REMEMBERED - 1).map((i) => known[known.length - 1 - (i % known.length)]!)
}

/** A random call of the operation. */
function callOf(method: string, path: string, { parameters = [], requestBody }: Operation): Arbitrary<Call> {
  const given = fc.tuple(...parameters.map((parameter) => argumentOf(parameter)))
  const schema = requestBody?.content[JSON_TYPE]?.schema as Schema | undefined
  const body = schema ? bodyOf(schema) : fc.constant(undefined)
  const type = fc.oneof(
    { weight: 30, arbitrary: fc.constant(JSON_TYPE) },
    { weight: 1, arbitrary: fc.constantFrom('text/plain', 'application/json; charset=latin1', 'multipart/form-data') },
  )
  return fc.tuple(given, body, type).map(([values, text, contentType]) => {
    const headers: Record<string, string> = text === undefined ? {} : { 'content-type': contentType }
    const query = new URLSearchParams()
    let url = path
    for (const [i, { name, in: where }] of parameters.entries()) {
      const value = values[i]
      if (where === 'path') url = url.replace(`{${name}}`, encodeURIComponent(value || 'x'))
      else if (value === undefined) continue
      else if (where === 'query') query.append(name, value)
      else if (/^[\x21-\x7e]+$/.test(value)) headers[name] = value
    }
    return { method, path, url: query.size > 0 ? `${url}?${query}` : url, headers, body: text }
  })
}

/** An argument for the parameter. Undefined means that it is omitted. */
function argumentOf({ name, in: where, required, schema = {} }: Parameter): Arbitrary<string | undefined> {
  const usual = where === 'path' ? seen() : fitting(schema, name).map((value) => String(value))
  const any = fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...HOSTILE) })
  return required ? any : fc.option(any, { nil: undefined, freq: 2 })
}

function bodyOf(schema: Schema): Arbitrary<string> {
  return fc.oneof(
    { weight: 30, arbitrary: fitting(schema).map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: STRANGE.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.constantFrom('', '{', '[[[[', '{"instruction": "x"', 'null', '\ufeff{}') },
  )
}

/** Removes the characters of host names and addresses: the server could resolve a random string. */
function withoutAddresses(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, part) =>
    typeof part === 'string' ? part.replaceAll(/[.:/]/g, '') : part,
  )
}

/** Sends the call. Returns the parts of the response that are not documented; empty if all are. */
async function send({ method, path, url, headers, body }: Call): Promise<{ status: number; problem: string }> {
  const response = await fetch(server.url + url, {
    method: method.toUpperCase(),
    headers: { 'x-svc-api-key': server.key, ...headers },
    body: body === undefined ? undefined : body,
  })
  const text = await response.text()
  const type = response.headers.get('content-type')?.split(';')[0] ?? ''
  return { status: response.status, problem: problemOf(method, path, response.status, type, text) }
}

function problemOf(method: string, path: string, status: number, type: string, text: string): string {
  if (status >= 500) return `${status} ${text}`
  try {
    const place = api.schemaPlace(method, unnamed(path), status, type)
    if (type !== JSON_TYPE) return ''
    const body = JSON.parse(text)
    if (status === 200) remember(body)
    return api.complaints(place, body) && `${status} ${text}: ${api.complaints(place, body)}`
  } catch (error) {
    return `${(error as Error).message}: ${status} ${text.slice(0, 300)}`
  }
}

/** Stores the ids and tokens of a response for later calls. */
function remember(body: unknown): void {
  const found = JSON.stringify(body).match(/"(?:\w*[iI]d|etag|nextPageToken)":"([^"\\]{1,100})"/g) ?? []
  for (const pair of found.slice(0, 5)) known.push(pair.split('":"')[1]!.slice(0, -1))
  known.splice(0, Math.max(0, known.length - REMEMBERED))
}

test('every response is documented, and none is a 5xx', { timeout: 3_600_000 }, async () => {
  const routes = api.operations().map((route) => callOf(...route))
  expect(routes.length).toBeGreaterThan(30)
  const statuses = new Map<number, number>()
  const problems: string[] = []
  let sent = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (sent < CALLS) {
        const seed = random.whole(0, 2 ** 31)
        const [call] = fc.sample(routes[sent++ % routes.length]!, { seed, numRuns: 1 }) as [Call]
        const { status, problem } = await send(call)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (problem)
          problems.push(`${call.method} ${call.url} ${JSON.stringify(call.headers)} ${call.body}\n  ${problem}`)
      }
    }),
  )
  figure('S11', 'calls, and routes', `${sent}, ${routes.length}`)
  figure(
    'S11',
    'answers by status',
    [...statuses]
      .sort()
      .map(([status, times]) => `${status}: ${times}`)
      .join(', '),
  )
  expect(problems).toEqual([])
  expect(server.process.exitCode).toBeNull()
})
