/**
 * Reads the configuration: `errand.yaml` and the environment → one frozen object. The environment overrides the file.
 * Every problem is found before any is reported, and one message lists them all.
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config.ts'
import { type ContextLimits, DEFAULT_LIMITS, type Limits, type Range, type SandboxLimits } from '../domain/limits.ts'
import { DRIVERS } from '../sandbox/drivers.ts'
import { blobsLocation } from './blobs-url.ts'
import { checkCombinations } from './combined-checks.ts'
import { SANDBOX_LIMITS } from './settings/sandbox.ts'
import { type ConfigFile, type Environment, readValues, type Values } from './sources.ts'

/** Lists every problem of a configuration, a sentence each. */
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
  /** Configuration file, which must exist. Default: `ERRAND_CONFIG`, else `errand.yaml` if it exists. */
  readonly file?: string
  /** Base of relative paths in arguments and the environment. */
  readonly cwd: string
}

/** Throws ConfigError. Reads no file except the configuration file. */
export function readConfig(sources: ConfigSources): Config {
  const { env, cwd } = sources
  const home = resolve(cwd, env.ERRAND_HOME || '.')
  const problems: string[] = []
  const file = findFile(sources, home, problems)
  const values = readValues({ env, file, cwd, home }, problems)
  checkCombinations(values, problems)
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

/** Shape of the nested values before defaults that depend on other settings are filled in. */
interface Tree extends Omit<Config, 'skillsDir' | 'tls' | 'metrics' | 'defaultModel' | 'blobs' | 'sandbox' | 'limits'> {
  readonly limits: Omit<Limits, 'context'> & { readonly context: ContextLimits }
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
      context: {
        compactAt: { ...DEFAULT_LIMITS.context.compactAt, default: limits.context.compactAt },
        keepTokens: { ...DEFAULT_LIMITS.context.keepTokens, default: limits.context.keepTokens },
      },
      network: sandbox.network,
      networkBytes: sandbox.networkBytes,
    },
    blobs: blobsLocation(values),
    // No default with Postgres: nodes with different folders would remove each other's skills.
    skillsDir: skillsDir ?? (rest.databaseUrl === undefined ? join(rest.dataDir, 'skills') : undefined),
    tls: tls && { certFile: tls.cert, keyFile: tls.key },
    metrics: { port: metrics?.port, key: metrics?.key },
    defaultModel: defaultModel ?? (names.includes('svc-3.5-flash') ? undefined : names[0]) ?? 'svc-3.5-flash',
  }
}

/** Ranges from the smallest working sandbox to `sandbox.max`, which defaults to the normal size. */
function rangesOf(usual: SandboxLimits, most: Partial<SandboxLimits> = {}): Limits['sandbox'] {
  const range = (name: keyof SandboxLimits): Range => {
    return { default: usual[name], min: DEFAULT_LIMITS.sandbox[name].min, max: most[name] ?? usual[name] }
  }
  return Object.fromEntries(SANDBOX_LIMITS.map((name) => [name, range(name)])) as unknown as Limits['sandbox']
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
