/** Every setting there is, in the order of the reference. */
import { isIP } from 'node:net'
import { parse as parseYaml } from 'yaml'
import * as z from 'zod'
import { DEFAULT_LIMITS, type Limits, type Range, type SandboxLimits } from '../domain/limits.ts'
import { ALL_PROVIDERS, findProvider, PROVIDER_NAMES } from '../models/providers/registry.ts'
import type { DriverSetting } from '../sandbox/driver.ts'
import { DRIVER_NAMES, DRIVERS } from '../sandbox/drivers.ts'
import { mcpServers } from './mcp-servers.ts'
import { networkRules } from './network-rules.ts'
import { address, choice, filePath, fraction, list, type Setting, section, text, toggle, whole } from './setting.ts'

/** Names that are no settings of the server and yet begin with ERRAND_. */
export const OTHER_VARIABLES: Readonly<Record<string, string>> = {
  ERRAND_CONFIG: 'The configuration file; default `errand.yaml`, where there is one. `--config` wins over it.',
  ERRAND_HOME:
    'Where `errand.yaml` and `./data` are looked for; default: the current directory. `script/server` and `script/errand` set it to the checkout.',
  ERRAND_BASE_URL:
    'For the clients, `errand run` and the other commands that call a server: its address, if `--server` is not given.',
  ERRAND_API_KEY:
    'For the clients, `errand run` and the other commands that call a server: the key, if `--key` is not given.',
  ERRAND_CRASH_AT:
    'For tests of recovery: the server kills itself where a run comes to this point, `tool-begins`, or comes to it for the third time, `after-write:3`; `src/engine/dependencies.ts` names them.',
}

const price = z.number('must be a number of US dollars per million tokens').min(0, 'must not be negative')

const MISSING = {
  model: 'is missing: the provider’s own name for the model',
  baseUrl: 'is missing: the address of the model server, with /v1',
}

const NO_SEND_REASONING = `is for the provider ${ALL_PROVIDERS.filter((provider) => provider.takesSendReasoning)
  .map(({ name }) => name)
  .join(' or ')}; the others send reasoning back as they need it`

const model = z
  .strictObject(
    {
      provider: z.enum(PROVIDER_NAMES, `must be one of ${PROVIDER_NAMES.join(', ')}`),
      model: z.string('must be the provider’s own name for the model').min(1, 'must not be empty').optional(),
      baseUrl: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).optional(),
      apiKeyEnv: z
        .string('must be the name of an environment variable')
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable, not the key itself')
        .optional(),
      price: z
        .strictObject(
          { input: price, output: price, cachedInput: price.optional(), cacheWrite: price.optional() },
          'must be {input, output}, and may have cachedInput and cacheWrite',
        )
        .optional(),
      vision: z.boolean('must be true or false').optional(),
      documents: z.boolean('must be true or false').optional(),
      maxTries: z.int('must be a whole number').min(1, 'must be at least 1').max(10, 'must be at most 10').optional(),
      idleTimeoutS: z.number('must be a number of seconds').positive('must be above 0').optional(),
      sendReasoning: z.boolean('must be true or false').optional(),
      fallbacks: z
        .array(z.string('must be a name of models'), 'must be a list of names of models')
        .max(5, 'must be at most 5 names')
        .optional(),
    },
    'must be a map with provider, model, …',
  )
  .superRefine((entry, context) => {
    const provider = findProvider(entry.provider)!
    for (const field of provider.requires) {
      if (entry[field] === undefined) context.addIssue({ code: 'custom', path: [field], message: MISSING[field] })
    }
    if (!provider.takesSendReasoning && entry.sendReasoning !== undefined) {
      context.addIssue({ code: 'custom', path: ['sendReasoning'], message: NO_SEND_REASONING })
    }
  })
  .transform((entry) => ({ ...entry, model: entry.model ?? entry.provider }))

const models = z.record(
  z.string().regex(/^[\w][\w.:/-]{0,127}$/, 'is no model name: letters, digits and . _ : / - are allowed'),
  model,
  'must be a map from names to models',
)

/** `10.1.0.0/16`, `127.0.0.1:9000`, `[::1]:9000`, `10.1.2.3`. */
function isAddressRange(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

function isPrivateRange(value: string): boolean {
  const cidr = /^(.+)\/(\d{1,3})(?::(\d{1,5}|\*))?$/.exec(value)
  if (cidr) {
    const version = isIP(cidr[1]!)
    if (cidr[3] !== '*' && Number(cidr[3] ?? 0) > 65535) return false
    return version !== 0 && Number(cidr[2]) <= (version === 4 ? 32 : 128)
  }
  const withPort = /^(?:\[(.+)\]|([^:]+)):(\d{1,5}|\*)$/.exec(value)
  if (withPort) return isIP(withPort[1] ?? withPort[2]!) !== 0 && (withPort[3] === '*' || Number(withPort[3]) <= 65535)
  return isIP(value) !== 0
}

type PlainLimit = { [K in keyof Limits]: Limits[K] extends number ? K : never }[keyof Limits]
type RangeLimit = { [K in keyof Limits]: Limits[K] extends Range ? K : never }[keyof Limits]

const limit = (name: PlainLimit, min: number, doc: string): Setting =>
  whole(`limits.${name}`, { min, fallback: DEFAULT_LIMITS[name], doc })

const time = (name: PlainLimit, doc: string): Setting =>
  fraction(`limits.${name}`, { min: 0, fallback: DEFAULT_LIMITS[name], doc })

const range = (name: RangeLimit, what: string): Setting[] => {
  const bound = (key: keyof Range, doc: string) =>
    whole(`limits.${name}.${key}`, { min: 1, fallback: DEFAULT_LIMITS[name][key], doc: `${what}: ${doc}.` })
  return [
    bound('default', 'where neither caller nor agent says'),
    bound('min', 'the least that may be asked for'),
    bound('max', 'the most that may be asked for'),
  ]
}

const sandboxLimit = (name: keyof SandboxLimits, doc: string): Setting[] => {
  const { min, default: fallback } = DEFAULT_LIMITS.sandbox[name]
  const number = name === 'cpus' ? fraction : whole
  const most = `The most that \`policy.sandbox.${name}\` may ask for; default: what \`sandbox.${name}\` is.`
  return [number(`sandbox.${name}`, { min, fallback, doc }), number(`sandbox.max.${name}`, { min, doc: most })]
}

/** `bucket`, `bucket/prefix`. */
const place = z.string().regex(/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](\/\S*)?$/)

const allowed = (scheme: string) =>
  section(`files.${scheme}.allow`, {
    must: 'a list of buckets, each with or without a /prefix, or a map from project ids (or *) to such lists',
    schema: z.union([z.array(place), z.record(z.string().regex(/^(\*|prj_\w+)$/), z.array(place))]),
    parse: (value) => parseYaml(value, { logLevel: 'error' }),
    fallback: [],
    doc: `The buckets that callers may name files in by \`${scheme}://\`; what is not listed is refused. See [Files by s3:// and gs://](#files-by-s3-and-gs).`,
  })

const variable = (path: string, doc: string) =>
  text(path, { must: 'the name of an environment variable', pattern: /^[A-Za-z_][A-Za-z0-9_]*$/, doc })

const endpoint = (path: string, doc: string) =>
  text(path, { must: 'an https or http address without a path', pattern: /^https?:\/\/[^/?#@\s]+$/, doc })

const fileSettings: readonly Setting[] = [
  list('files.types', {
    must: 'a list of media types like text/csv or image/*',
    item: (value) => /^[\w.+-]+\/([\w.+-]+|\*)$/.test(value),
    doc: 'What a file by URL may be, by the Content-Type that it comes with. Empty: anything.',
  }),
  allowed('s3'),
  text('files.s3.region', { must: 'a region', pattern: /^[a-z0-9-]+$/, fallback: 'us-east-1', doc: 'Their region.' }),
  endpoint('files.s3.endpoint', 'Where they are, when not at Amazon: any store that speaks S3. It may be private.'),
  variable('files.s3.accessKeyIdEnv', 'The variable with the key’s id. Without it, what the AWS SDK finds.'),
  variable('files.s3.secretAccessKeyEnv', 'The variable with the key itself.'),
  toggle('files.s3.pathStyle', {
    doc: 'Whether the bucket’s name stands in the path, not in the host; default: where there is an `endpoint`.',
  }),
  allowed('gs'),
  filePath('files.gs.credentialsFile', { must: 'the path of a JSON file', doc: 'A service account’s key file.' }),
  variable('files.gs.accessKeyIdEnv', 'Instead of a file: the variable with an HMAC key’s id.'),
  variable('files.gs.secretAccessKeyEnv', 'The variable with the HMAC key itself.'),
  endpoint('files.gs.endpoint', 'Where they are, when not at `https://storage.googleapis.com`.'),
]

/** A driver's own setting. */
function driverSetting([name, setting]: [string, DriverSetting]): Setting {
  const path = `sandbox.${name}`
  switch (setting.kind) {
    case 'choice':
      return choice(path, setting)
    case 'text':
      return text(path, setting)
    case 'path':
      return filePath(path, setting)
  }
}

export const SETTINGS: readonly Setting[] = [
  whole('port', { min: 0, max: 65_535, fallback: 8080, doc: 'The port to listen on; 0 takes a free one.' }),
  text('host', {
    must: 'an IP address or a host name',
    pattern: /^[A-Za-z0-9.:_-]+$/,
    fallback: '127.0.0.1',
    doc: 'The address to listen on. Any but loopback needs `tls` or an https `publicUrl`.',
  }),
  list('trustedProxies', {
    must: 'a list of addresses like 127.0.0.1 or 10.1.0.0/16',
    item: isAddressRange,
    doc: 'The proxies before this server, which tell in `X-Forwarded-For` for whom they ask. Without them attempts to sign in through a proxy count as one visitor’s.',
  }),
  address('publicUrl', {
    must: 'an https address, or an http one on loopback',
    schemes: ['http', 'https'],
    doc: 'How callers reach this server, where that is not the address it listens on: the links to files begin with it.',
  }),
  filePath('tls.cert', { must: 'the path of a PEM file', doc: 'The server’s own TLS: its certificate chain.' }),
  filePath('tls.key', { must: 'the path of a PEM file', doc: 'The server’s own TLS: its private key.' }),
  filePath('dataDir', {
    must: 'the path of a directory',
    fallback: './data',
    doc: 'Where everything is kept; made where it is missing.',
  }),
  filePath('skillsDir', {
    must: 'the path of a directory',
    doc: 'The operator’s skills: each folder in it with a `SKILL.md` is there for every project. Default: `skills` in `dataDir`, or with Postgres none. Looked at again every few seconds.',
  }),
  address('databaseUrl', {
    must: 'an address like postgres://user@host/name',
    schemes: ['postgres', 'postgresql'],
    secret: true,
    doc: 'Postgres, for several nodes ([postgres.md](postgres.md)); without it SQLite in the data directory. Needs `secret`.',
  }),
  address('databaseListenUrl', {
    must: 'an address like postgres://user@host/name',
    schemes: ['postgres', 'postgresql'],
    secret: true,
    doc: 'The same database without the pooler in between, where `databaseUrl` goes through one that shares connections: nodes wake each other over one connection to it. Without it that is `databaseUrl`.',
  }),
  whole('databasePool', {
    min: 2,
    max: 1000,
    fallback: 10,
    doc: 'Connections to Postgres that this process has at most.',
  }),
  address('blobsUrl', {
    must: 'an address like s3://bucket/prefix or file:///directory',
    schemes: ['s3', 'file'],
    secret: true,
    doc: 'Where files are kept; without it in the data directory. See [Files in a bucket](#files-in-a-bucket).',
  }),
  text('secret', {
    must: 'at least 32 characters',
    pattern: /^.{32,}$/s,
    secret: true,
    doc: 'Key hashes and signatures hang on it; the same on all nodes. Without it one is made, once, in the data directory.',
  }),
  choice('role', {
    values: ['all', 'api', 'worker'],
    fallback: 'all',
    doc: 'What this process does: `api` answers callers and has no sandboxes, `worker` works on interactions and answers no callers. Both need `databaseUrl`.',
  }),
  toggle('console.signUp', {
    fallback: false,
    doc: 'Whether anybody who can reach the console may make an account of their own. The service is off in it until its owner switches it on.',
  }),
  address('console.oidc.issuer', {
    must: 'an https address, or an http one on loopback',
    schemes: ['http', 'https'],
    doc: 'An OpenID Connect provider to sign in to the console with, beside passwords. It sends browsers back to `<publicUrl>/console/auth/callback/oidc`.',
  }),
  text('console.oidc.clientId', {
    must: 'a client’s id',
    pattern: /^\S+$/,
    doc: 'What the provider calls this server.',
  }),
  text('console.oidc.clientSecret', {
    must: 'a client’s secret',
    pattern: /^\S+$/,
    secret: true,
    doc: 'And its secret there.',
  }),
  text('console.oidc.name', {
    must: 'a name',
    pattern: /^\S.{0,63}$/,
    fallback: 'Single sign-on',
    doc: 'What the console’s button says.',
  }),
  toggle('demo', {
    fallback: true,
    doc: 'Whether the built-in demo model may stand in where no real model is configured or found.',
  }),
  fraction('leaseS', {
    min: 1,
    max: 3600,
    fallback: 30,
    doc: 'How long a worker that went silent keeps its interaction, seconds.',
  }),
  fraction('drainS', {
    min: 0,
    max: 3600,
    fallback: 20,
    doc: 'How long SIGTERM waits for running interactions before it hands them to the next start, seconds.',
  }),
  choice('log', {
    values: ['debug', 'info', 'warn', 'error', 'silent'],
    fallback: 'info',
    doc: 'The least level that is logged, on stderr: JSON lines, or short ones on a terminal.',
  }),
  whole('workerSlots', {
    min: 1,
    max: 10_000,
    fallback: 64,
    doc: 'Interactions worked on at once, all projects together.',
  }),
  text('defaultModel', {
    must: 'a model name',
    pattern: /^[\w][\w.:/-]{0,127}$/,
    doc: 'The model where neither caller nor agent names one; default `svc-3.5-flash`, or the first of `models` where that has no such name.',
  }),
  section('models', {
    must: 'a map from names to models',
    schema: models,
    parse: (value) => parseYaml(value, { logLevel: 'error' }),
    fallback: {},
    doc: 'Names and the models behind them (below). Empty: known environment keys, then a model server on loopback, then the demo model.',
  }),
  choice('sandbox.driver', {
    env: 'ERRAND_SANDBOX',
    values: DRIVER_NAMES,
    fallback: 'bubblewrap',
    doc: `What makes sandboxes: ${DRIVER_NAMES.map((name) => `\`${name}\` ${DRIVERS[name].summary}`).join(', ')}.`,
  }),
  ...sandboxLimit('memoryMiB', 'Memory of one sandbox, MiB.'),
  ...sandboxLimit('cpus', 'Processor cores of one sandbox; fractions allowed.'),
  ...sandboxLimit('pids', 'Processes and threads of one sandbox.'),
  ...sandboxLimit('workspaceMiB', 'Size of one sandbox’s workspace, MiB.'),
  ...sandboxLimit('files', 'Files, directories and links in one sandbox’s workspace, and as many in its `/tmp`.'),
  ...sandboxLimit('outputBytes', 'Output kept of one tool call, bytes; more is cut from the middle and marked.'),
  whole('sandbox.pool', { min: 0, max: 1000, fallback: 2, doc: 'Warm sandboxes kept ready.' }),
  whole('sandbox.maxOpen', { min: 1, fallback: 64, doc: 'Sandboxes that may stand at once.' }),
  ...DRIVER_NAMES.flatMap((name) => Object.entries(DRIVERS[name].settings).map(driverSetting)),
  section('sandbox.network', {
    must: '`disabled`, `public`, or a list of hosts like api.example.com, *.example.com, example.com:8443',
    schema: networkRules,
    parse: (value) =>
      value === 'disabled' || value === 'public' ? value : value.split(',').map((rule) => rule.trim()),
    fallback: 'public',
    doc: 'The most that a run may ask for as its `network`; by itself a run has none. Whatever it is, addresses that are not public stay closed.',
  }),
  whole('sandbox.networkBytes', {
    min: 0,
    fallback: DEFAULT_LIMITS.networkBytes,
    doc: 'What the sandboxes of one run may carry over their network, both ways together, bytes.',
  }),
  section('mcp', {
    must: 'a map from names to MCP servers',
    schema: mcpServers,
    parse: (value) => parseYaml(value, { logLevel: 'error' }),
    fallback: {},
    doc: 'MCP servers that callers may name without an address. See [MCP servers](#mcp-servers).',
  }),
  choice('search.provider', {
    values: ['none', 'searxng', 'brave', 'tavily', 'exa', 'model'],
    fallback: 'none',
    doc: 'What `web_search` asks. `model`: the own search of the model’s provider (OpenAI, Anthropic, Google). `none`: the tool is not offered.',
  }),
  address('search.baseUrl', {
    must: 'an http or https address',
    schemes: ['http', 'https'],
    doc: 'Where the search service is, where that is not its usual place; for SearXNG always, and it may be private. SearXNG needs `json` among its `search.formats`.',
  }),
  text('search.apiKeyEnv', {
    must: 'the name of an environment variable, not the key itself',
    pattern: /^[A-Za-z_][A-Za-z0-9_]*$/,
    secret: true,
    doc: 'The environment variable with the key; default `BRAVE_API_KEY`, `TAVILY_API_KEY` or `EXA_API_KEY`.',
  }),
  whole('browser.memoryMiB', { min: 256, fallback: 1024, doc: 'Memory of one browser, MiB.' }),
  whole('browser.pids', { min: 128, fallback: 512, doc: 'Processes and threads of one browser.' }),
  text('browser.executable', {
    must: 'an absolute path',
    pattern: /^\//,
    doc: 'Chromium’s binary inside the sandboxes’ root, no wrapper script; without it the one that is found there.',
  }),
  list('egress.allowPrivate', {
    must: 'a list of addresses like 127.0.0.1:9000 or 10.1.0.0/16',
    item: isPrivateRange,
    doc: 'Private addresses that runs may reach all the same, by http too: by files by URL, and by sandboxes whose `network` allows a host there. Without a port, 80 and 443; `10.1.0.0/16:9000` opens another, `:*` all.',
  }),
  filePath('egress.caFile', {
    must: 'the path of a PEM file',
    doc: 'Certificates of authorities to trust beside the usual ones, where hosts of your own are signed by one: for connections of runs, and inside sandboxes.',
  }),
  ...fileSettings,
  whole('metrics.port', { min: 0, max: 65_535, doc: 'A port of its own for `GET /metrics`, on `host`.' }),
  text('metrics.key', {
    must: 'at least 16 characters without spaces',
    pattern: /^\S{16,}$/,
    secret: true,
    doc: 'A key for `GET /metrics` on the main port: `Authorization: Bearer …`.',
  }),
  limit('interactionsPerMinute', 1, 'Interactions that a project may create in a minute.'),
  limit('callsPerMinute', 1, 'Other calls of a project in a minute.'),
  limit('runningPerProject', 1, 'Interactions of a project that run at once; the next ones queue.'),
  limit('queuedPerProject', 0, 'Interactions of a project that may wait; more answer 503.'),
  time('queueWaitS', 'How long one may wait for a worker, seconds; then it fails with 503.'),
  limit('bodyBytes', 1024, 'A request body, bytes.'),
  limit(
    'responseBytesPerProject',
    1,
    'Answers of a project that its callers have not read yet, bytes, in one process; more calls answer 429. A single larger answer is sent.',
  ),
  limit('uploadBytesPerProject', 1, 'Bodies that a project is sending, bytes, in one process; more answer 429.'),
  limit(
    'streamsPerProject',
    1,
    'Event streams, waiting calls, downloads and uploads of skills that a project has open, in one process; more answer 429.',
  ),
  limit('inlineFilesBytes', 0, 'All inline files of a request together, decoded, bytes.'),
  limit('fileBytes', 0, 'A file by URL, bytes.'),
  time('fileFetchS', 'How long a file by URL may take to come, seconds; half a minute without a byte ends it too.'),
  limit('outputFilesBytes', 0, 'All output files of an interaction together, bytes.'),
  limit('outputFiles', 0, 'Output files of an interaction. What is over is left behind, with a warning.'),
  limit(
    'outputNamesBytes',
    0,
    'The names of all output files of an interaction together, bytes: every answer with the interaction carries them. One name has at most 1,024.',
  ),
  time('retentionDays', 'How long an ended interaction is kept, days.'),
  time('auditRetentionDays', 'How long it stays on record what was removed, days (`errand audit removed`).'),
  ...range('maxTurnDuration', '`policy.maxTurnDuration`, seconds'),
  ...range('maxOutputTokens', '`policy.maxOutputTokens`, tokens'),
  ...range('maxToolDuration', '`policy.maxToolDuration`, seconds of one tool call'),
  limit('maxModelCalls', 1, 'Model calls in one run: a stop for a model that never ends.'),
  limit('instructionChars', 1, '`instruction`, characters.'),
  limit('systemInstructionChars', 1, '`systemInstruction`, characters.'),
  limit('tools', 0, 'Entries in `tools`.'),
  limit('skills', 0, 'Entries in `skills`.'),
  limit('skillBytes', 1024, 'A skill: its zip, and its files unpacked, bytes.'),
  limit('skillFiles', 1, 'Files of a skill.'),
  limit('skillVersions', 1, 'Versions of skills that a project may keep, of all its skills together.'),
  limit('mcp', 0, 'Entries in `mcp`.'),
  limit('files', 0, 'Entries in `files`.'),
  limit('labels', 0, 'Labels of one object.'),
  limit('labelKeyChars', 1, 'A label’s key, characters.'),
  limit('labelValueChars', 0, 'A label’s value, characters.'),
  limit('jsonDepth', 4, 'How deep a request’s JSON may be nested.'),
]
