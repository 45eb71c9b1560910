/**
 * Starts Errand in this process: reads the configuration, then opens the parts. A known reason why it cannot start becomes an
 * Exit with a sentence; anything else is a bug and keeps its stack trace.
 */
import { accessSync, constants, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Accounts } from '../accounts/accounts.ts'
import { BlobsUnavailable } from '../blobs/port.ts'
import { beginSandboxes } from '../compose/begin-sandboxes.ts'
import type { OpenOptions } from '../compose/context.ts'
import type { Admin, Errand } from '../compose.ts'
import { ConfigError, readConfig, unsupported } from '../config/read-config.ts'
import type { Config } from '../config.ts'
import { ErrandError } from '../domain/errors.ts'
import { SandboxError } from '../sandbox/port.ts'
import { type CliContext, Exit } from './context.ts'
import { createLog, quieter } from './log.ts'

/** Loaded on demand: help, a configuration check and a run on another server do not need it. */
const parts = () => import('../compose.ts')

export interface ConfigOption {
  /** `--config FILE`. */
  readonly config?: string
}

/** Throws Exit, which lists every problem. */
export function loadConfig(context: CliContext, options: ConfigOption, code = 1): Config {
  try {
    const config = readConfig({ env: context.env, cwd: context.cwd, file: options.config })
    const missing = unsupported(config)
    if (missing.length > 0) throw new ConfigError(missing)
    return config
  } catch (error) {
    if (error instanceof ConfigError) throw new Exit(code, describeProblems(error.problems))
    throw error
  }
}

export function describeProblems(problems: readonly string[]): string {
  if (problems.length === 1) return `The configuration has a problem: ${problems[0]}`
  return [`The configuration has ${problems.length} problems:`, ...problems.map((problem) => `  - ${problem}`)].join(
    '\n',
  )
}

/** Throws Exit if Errand cannot start. The caller must close the result. */
export async function startErrand(config: Config, options: Omit<OpenOptions, 'sandboxes'>, code = 1): Promise<Errand> {
  return starting(config, code, async () => {
    const sandboxes = await beginSandboxes(config, options.log)
    return (await parts()).openErrand(config, { ...options, sandboxes })
  })
}

/** Opens only the accounts, calls `use`, and closes them. */
export function withAccounts<T>(
  context: CliContext,
  options: ConfigOption,
  use: (accounts: Accounts) => Promise<T>,
): Promise<T> {
  return withAdmin(context, options, ({ accounts }) => use(accounts))
}

export async function withAdmin<T>(
  context: CliContext,
  options: ConfigOption,
  use: (admin: Admin) => Promise<T>,
): Promise<T> {
  const config = loadConfig(context, options)
  const admin: Admin = await starting(config, 1, async () => {
    return (await parts()).openAdmin(config, createLog(quieter(config.log), context.err))
  })
  try {
    return await use(admin)
  } catch (error) {
    throw startFailure(error, 1)
  } finally {
    await admin.close()
  }
}

async function starting<T>(config: Config, code: number, open: () => Promise<T>): Promise<T> {
  const problem = dataDirProblem(config.dataDir)
  if (problem !== undefined) throw new Exit(code, problem)
  return open().catch((error: unknown) => {
    throw startFailure(error, code)
  })
}

/** Throws Exit if the server cannot listen. */
export async function listen(errand: Errand, config: Config, code = 1): Promise<{ readonly url: string }> {
  return errand.listen().catch((error: NodeJS.ErrnoException) => {
    throw new Exit(code, listenProblem(error, config) ?? startFailure(error, code).message)
  })
}

export function listenProblem(error: NodeJS.ErrnoException, { host, port }: Config): string | undefined {
  const other = 'Choose another: ERRAND_PORT=8081, or `port: 8081` in errand.yaml.'
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is in use by another program. ${other}`
    case 'EACCES':
      return `This user is not allowed to listen on port ${port}. ${other}`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `This machine has no address ${host}. Set ERRAND_HOST to one of its own, or to 127.0.0.1.`
    default:
      return undefined
  }
}

/** Creates the directory if it does not exist. Returns a sentence if it cannot be used. */
export function dataDirProblem(dataDir: string): string | undefined {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
    return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const choice = 'or set ERRAND_DATA_DIR to another directory.'
    if (code === 'EACCES' || code === 'EPERM') {
      return `This user cannot write to the data directory ${dataDir}. Allow writing in ${dirname(dataDir)}, ${choice}`
    }
    if (code === 'EEXIST' || code === 'ENOTDIR')
      return `The data directory ${dataDir} is not a directory. Move that file, ${choice}`
    if (code === 'EROFS')
      return `The data directory ${dataDir} is on a read-only file system. Mount it writable, ${choice}`
    if (code === 'ENOSPC') return `There is no space left for the data directory ${dataDir}. Free some, ${choice}`
    return `The data directory ${dataDir} cannot be used (${code}). Fix that, ${choice}`
  }
}

/** Known start failures are the errors below, plain Errors, and system errors. A TypeError, for example, is a bug and is thrown. */
function startFailure(error: unknown, code: number): Exit {
  if (error instanceof Exit) return error
  const known = [SandboxError, ErrandError, BlobsUnavailable].some((kind) => error instanceof kind)
  if (known) return new Exit(code, (error as Error).message)
  if (error instanceof Error && (error.constructor === Error || 'code' in error)) return new Exit(code, error.message)
  throw error
}
