/**
 * The configuration: `errand.yaml` and the environment → one frozen object. The environment wins over the file.
 * Every problem is found before any is reported, and all stand in one message.
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { BlobsLocation } from './blobs/port.ts'
import type { BucketSettings } from './buckets/port.ts'
import { parseBlobsUrl } from './config/blobs-url.ts'
import { checkNodes } from './config/nodes.ts'
import { type ConfigFile, type Environment, readValues, type Values } from './config/sources.ts'
import { DEFAULT_LIMITS, type Limits, type Range, type SandboxLimits } from './domain/limits.ts'
import type { RequireApproval } from './domain/mcp.ts'
import type { Network } from './domain/network.ts'
import type { Price } from './domain/usage.ts'
import type { ProviderName } from './models/providers/registry.ts'
import { DRIVERS, type DriverChoice } from './sandbox/drivers.ts'

export interface ModelConfig {
  readonly provider: ProviderName
  /** The provider's own name for the model. */
  readonly model: string
  readonly baseUrl?: string
  /** The environment variable that holds the key; the key itself never stands in the file. */
  readonly apiKeyEnv?: string
  readonly price?: Price
  /** Whether the model can be shown images. */
  readonly vision?: boolean
  /** Whether it takes PDFs whole. */
  readonly documents?: boolean
  /** Tries for a call before its first fragment. */
  readonly maxTries?: number
  /** Seconds without a byte after which a call counts as stalled. */
  readonly idleTimeoutS?: number
  /** Whether reasoning is sent back, with `openai-compatible`. Default: for models that refuse a call without it. */
  readonly sendReasoning?: boolean
  /** Names of other models that are asked, in this order, where this one fails before it has said anything. */
  readonly fallbacks?: readonly string[]
}

/** How a registered MCP server is signed in to. Fields that end in `Env` name environment variables. */
export type McpAuthentication =
  | { readonly type: 'bearer'; readonly tokenEnv: string }
  | { readonly type: 'headers'; readonly headersEnv: Readonly<Record<string, string>> }
  | { readonly type: 'basic'; readonly username: string; readonly passwordEnv: string }
  | {
      readonly type: 'oauth2'
      readonly tokenUrl?: string
      readonly clientId?: string
      readonly clientSecretEnv?: string
      readonly refreshTokenEnv?: string
      readonly accessTokenEnv?: string
      readonly scopes?: readonly string[]
    }

interface McpRules {
  /** The most that a caller may use; undefined: all. */
  readonly allowedTools?: readonly string[]
  /** A caller can ask for more approval than this, not for less. */
  readonly requireApproval?: RequireApproval
}

/** An MCP server that callers name without an address. */
export type McpServerConfig =
  | (McpRules & { readonly url: string; readonly authentication?: McpAuthentication })
  | (McpRules & {
      /** Runs in a sandbox of its own. */
      readonly command: readonly string[]
      readonly env: Readonly<Record<string, string>>
      /** Variables of this server's environment that it is given too. */
      readonly envFrom: readonly string[]
      /** Directories of this machine that it sees, read-only. */
      readonly mounts: readonly { readonly source: string; readonly target: string }[]
      /** What it may reach through the guard. */
      readonly network: Network
      readonly limits: Partial<Pick<SandboxLimits, 'memoryMiB' | 'cpus' | 'pids'>>
    })

export interface Config {
  readonly host: string
  readonly port: number
  /** How callers reach this server; links to files begin with it. Undefined: by the address it listens at. */
  readonly publicUrl: string | undefined
  /** Whose `X-Forwarded-For` is believed: addresses and ranges. */
  readonly trustedProxies: readonly string[]
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly dataDir: string
  /** The operator's skills. Undefined: none by folder. */
  readonly skillsDir: string | undefined
  /** `postgres://…`; undefined: SQLite in the data dir. */
  readonly databaseUrl: string | undefined
  /** Where LISTEN works, where `databaseUrl` goes through a pooler that breaks it. */
  readonly databaseListenUrl: string | undefined
  /** Connections to Postgres at most. */
  readonly databasePool: number
  /** Where files are kept: by `blobsUrl`, or in the data dir. */
  readonly blobs: BlobsLocation
  /** Key hashes, signatures and the vault hang on it. Undefined: made once in the data dir. Always there with `databaseUrl`. */
  readonly secret: string | undefined
  /** What this process does; one that is not `all` shares its database with others. */
  readonly role: 'all' | 'api' | 'worker'
  /** Whether the built-in demo model may stand in where no real model is configured or found. */
  readonly demo: boolean
  readonly leaseS: number
  /** How long SIGTERM waits for running interactions before it hands them over, seconds. */
  readonly drainS: number
  readonly log: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Interactions that this process works on at once, all projects together. */
  readonly workerSlots: number
  readonly sandbox: SandboxLimits &
    DriverChoice & {
      /** Warm sandboxes kept ready. */
      readonly pool: number
      readonly maxOpen: number
      /** The most that runs may ask for. */
      readonly network: Network
      readonly networkBytes: number
    }
  /** What a browser's own sandbox may use, where that is not as `sandbox` has it. */
  readonly browser: {
    readonly memoryMiB: number
    readonly pids: number
    /** Undefined: what the sandbox's self-test found. */
    readonly executable: string | undefined
  }
  readonly limits: Limits
  /** Empty: known environment keys, then local model servers, then the demo model. In the order of the file. */
  readonly models: Readonly<Record<string, ModelConfig>>
  readonly defaultModel: string
  /** By the names that callers use. */
  readonly mcp: Readonly<Record<string, McpServerConfig>>
  /** What `web_search` asks. `model`: the models' own search, where their provider has one. */
  readonly search: {
    readonly provider: 'none' | 'searxng' | 'brave' | 'tavily' | 'exa' | 'model'
    /** There where the service is not where it usually is; always with SearXNG. */
    readonly baseUrl?: string
    /** The environment variable that holds the key; the key itself never stands in the file. */
    readonly apiKeyEnv?: string
  }
  readonly egress: {
    /** `10.1.0.0/16`, `127.0.0.1:9000`: private addresses that runs may reach all the same. */
    readonly allowPrivate: readonly string[]
    /** PEM certificates of authorities to trust beside the usual ones. */
    readonly caFile: string | undefined
  }
  /** Buckets that callers may name files in. */
  readonly files: BucketSettings & {
    /** `text/csv`, `image/*`: what a file by URL may be. Empty: anything. */
    readonly types: readonly string[]
  }
  readonly console: {
    /** Whether anybody may make an account. */
    readonly signUp: boolean
    /** A provider to sign in with, where `issuer` is set; `clientId` is then, too. */
    readonly oidc: {
      readonly issuer?: string
      readonly clientId?: string
      readonly clientSecret?: string
      /** What the button says. */
      readonly name: string
    }
  }
  readonly metrics: { readonly port: number | undefined; readonly key: string | undefined }
}

/** Everything that is wrong with a configuration, a sentence each. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

export interface ConfigSources {
  readonly env: Environment
  /** The configuration file, which must be there; without it `ERRAND_CONFIG`, then `errand.yaml` where there is one. */
  readonly file?: string
  /** What relative paths in arguments and the environment are relative to. */
  readonly cwd: string
}

/** Throws ConfigError. Reads the configuration file and nothing else. */
export function readConfig(sources: ConfigSources): Config {
  const { env, cwd } = sources
  const home = resolve(cwd, env.ERRAND_HOME || '.')
  const problems: string[] = []
  const file = findFile(sources, home, problems)
  const values = readValues({ env, file, cwd, home }, problems)
  checkTogether(values, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return freeze(build(values))
}

function findFile({ env, file, cwd }: ConfigSources, home: string, problems: string[]): ConfigFile | undefined {
  const named = file ?? (env.ERRAND_CONFIG || undefined)
  const candidates =
    named === undefined ? [resolve(cwd, 'errand.yaml'), resolve(home, 'errand.yaml')] : [resolve(cwd, named)]
  for (const path of candidates) {
    try {
      return { path, text: readFileSync(path, 'utf8') }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' || named !== undefined) {
        problems.push(`The configuration file ${path} can't be read (${code}).`)
        return undefined
      }
    }
  }
  return undefined
}

const SANDBOX_LIMITS = Object.keys(DEFAULT_LIMITS.sandbox) as (keyof SandboxLimits)[]

/** What no setting shows alone. A value that was refused before is absent here and says nothing twice. */
function checkTogether(values: Values, problems: string[]): void {
  for (const name of ['maxTurnDuration', 'maxOutputTokens', 'maxToolDuration']) {
    const [least, usual, most] = ['min', 'default', 'max'].map(
      (bound) => values.get(`limits.${name}.${bound}`) as number,
    )
    if (least! > most!) problems.push(`limits.${name}.min is ${least}, above limits.${name}.max, ${most}.`)
    else if (usual! < least! || usual! > most!) {
      problems.push(`limits.${name}.default is ${usual}; it must be from its min, ${least}, to its max, ${most}.`)
    }
  }
  for (const name of SANDBOX_LIMITS) {
    const usual = values.get(`sandbox.${name}`) as number
    const most = values.get(`sandbox.max.${name}`) as number | undefined
    if (most! < usual) problems.push(`sandbox.max.${name} is ${most}, below sandbox.${name}, ${usual}.`)
  }
  if (values.has('tls.cert') !== values.has('tls.key')) {
    problems.push(`tls.cert and tls.key go together; ${values.has('tls.cert') ? 'tls.key' : 'tls.cert'} is missing.`)
  }
  if (values.has('console.oidc.issuer') && !values.has('console.oidc.clientId')) {
    problems.push('console.oidc.issuer is set, and console.oidc.clientId is missing.')
  }
  if (values.get('search.provider') === 'searxng' && !values.has('search.baseUrl')) {
    problems.push('search.provider is "searxng", and search.baseUrl is missing: where SearXNG is.')
  }
  checkAddress(values, problems)
  checkNodes(values, problems)
  try {
    blobsOf(values)
  } catch (error) {
    problems.push(`blobsUrl ${(error as Error).message}.`)
  }
  const models = (values.get('models') ?? {}) as Config['models']
  const chosen = values.get('defaultModel') as string | undefined
  const names = Object.keys(models)
  if (chosen !== undefined && names.length > 0 && !names.includes(chosen) && !chosen.startsWith('svc-')) {
    problems.push(`defaultModel is ${JSON.stringify(chosen)}; it must be one of models: ${names.join(', ')}.`)
  }
  for (const [name, model] of Object.entries(models)) {
    for (const fallback of model.fallbacks ?? []) checkFallback(models, name, fallback, problems)
  }
}

function checkFallback(models: Config['models'], name: string, fallback: string, problems: string[]): void {
  const setting = `models.${name}.fallbacks`
  const other = models[fallback]
  if (fallback === name) problems.push(`${setting} names ${JSON.stringify(name)} itself.`)
  else if (!other) {
    problems.push(
      `${setting} names ${JSON.stringify(fallback)}; it must be one of models: ${Object.keys(models).join(', ')}.`,
    )
  } else if (models[name]!.price && !other.price) {
    problems.push(
      `${setting} names ${JSON.stringify(fallback)}, which has no price while ${name} has one: policy.maxCost could not hold. Give it a price.`,
    )
  }
}

/** Keys and files never travel in the clear beyond this machine: contract.md, "plain http on loopback alone". */
function checkAddress(values: Values, problems: string[]): void {
  const publicUrl = values.get('publicUrl') as string | undefined
  if (publicUrl?.startsWith('http:') && !isLoopback(new URL(publicUrl).hostname)) {
    problems.push(`publicUrl is ${JSON.stringify(publicUrl)}; beyond loopback it must be https.`)
  }
  const host = values.get('host') as string | undefined
  if (host !== undefined && ['0.0.0.0', '::'].includes(host) && publicUrl === undefined) {
    problems.push(
      `host is ${JSON.stringify(host)}, every address of this machine: set publicUrl to the https address at which ` +
        'callers reach it (a proxy’s, or its own with tls.cert and tls.key), or take 127.0.0.1.',
    )
  } else if (host !== undefined && !isLoopback(host) && publicUrl === undefined && !values.has('tls.cert')) {
    problems.push(
      `host is ${JSON.stringify(host)}, which other machines can reach, and there is no TLS: set tls.cert and tls.key, ` +
        'or publicUrl to the https address of the proxy before this server, or take 127.0.0.1.',
    )
  }
}

export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
}

/** The parts of a Config that can be wholly unset have other shapes in the table. */
interface Tree extends Omit<Config, 'skillsDir' | 'tls' | 'metrics' | 'defaultModel' | 'blobs' | 'sandbox'> {
  readonly sandbox: Config['sandbox'] & { readonly max?: Partial<SandboxLimits> }
  readonly skillsDir?: string
  readonly blobsUrl?: string
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly metrics?: Partial<Config['metrics']>
  readonly defaultModel?: string
}

function build(values: Values): Config {
  const nested: Record<string, unknown> = {}
  for (const [path, value] of values) place(nested, path.split('.'), value)
  const {
    tls,
    metrics,
    defaultModel,
    skillsDir,
    blobsUrl: _,
    sandbox: withMax,
    limits,
    ...rest
  } = nested as unknown as Tree
  const { max, ...sandbox } = withMax
  const names = Object.keys(rest.models)
  return {
    ...rest,
    sandbox,
    limits: {
      ...limits,
      sandbox: rangesOf(sandbox, max),
      network: sandbox.network,
      networkBytes: sandbox.networkBytes,
    },
    blobs: blobsOf(values),
    // Nodes with folders of their own would each take back the others' skills.
    skillsDir: skillsDir ?? (rest.databaseUrl === undefined ? join(rest.dataDir, 'skills') : undefined),
    tls: tls && { certFile: tls.cert, keyFile: tls.key },
    metrics: { port: metrics?.port, key: metrics?.key },
    defaultModel: defaultModel ?? (names.includes('svc-3.5-flash') ? undefined : names[0]) ?? 'svc-3.5-flash',
  }
}

/** From the least a sandbox can work with to the operator's word, which is the default where there is none. */
function rangesOf(usual: SandboxLimits, most: Partial<SandboxLimits> = {}): Limits['sandbox'] {
  const range = (name: keyof SandboxLimits): Range => {
    return { default: usual[name], min: DEFAULT_LIMITS.sandbox[name].min, max: most[name] ?? usual[name] }
  }
  return Object.fromEntries(SANDBOX_LIMITS.map((name) => [name, range(name)])) as unknown as Limits['sandbox']
}

function blobsOf(values: Values): BlobsLocation {
  const url = values.get('blobsUrl') as string | undefined
  return url === undefined
    ? { kind: 'disk', directory: join(values.get('dataDir') as string, 'blobs') }
    : parseBlobsUrl(url)
}

function place(tree: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path as [string, ...string[]]
  if (rest.length === 0) {
    tree[key] = value
    return
  }
  tree[key] ??= {}
  place(tree[key] as Record<string, unknown>, rest, value)
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) freeze(part)
  return Object.freeze(value)
}

/** Settings that are valid by themselves and cannot be used with the chosen sandbox driver, a sentence each. */
export function unsupported({ sandbox }: Config): string[] {
  const conflict = DRIVERS[sandbox.driver].conflict({ ...sandbox })
  return conflict === undefined ? [] : [conflict]
}
