/** `errand config check`: reads the configuration and reports every problem, unset variables that it names included. */
import { describeBlobs } from '../config/blobs-url.ts'
import type { Config } from '../config.ts'
import { missingSearchKey } from '../search/create-search.ts'
import { type CliContext, Exit } from './context.ts'
import { type ConfigOption, describeProblems, loadConfig } from './start.ts'

/** Throws Exit with every problem. */
export async function checkConfig(context: CliContext, options: ConfigOption): Promise<void> {
  const config = loadConfig(context, options)
  // An api process calls neither models nor services; the workers have the keys.
  const problems = config.role === 'api' ? [] : await unusable(config, context.env)
  if (problems.length > 0) throw new Exit(1, describeProblems(problems))
  const { host, port, dataDir, blobs } = config
  context.out.write(`The configuration is valid: ${host}:${port}, data in ${dataDir}, files ${describeBlobs(blobs)}.\n`)
}

/** Settings that do not keep the server from starting and that it could not use, a sentence each. */
async function unusable(config: Config, env: CliContext['env']): Promise<string[]> {
  const search = missingSearchKey(config.search, env)
  return [
    ...(await unavailableModels(config, env)),
    ...(search === undefined ? [] : [`${search}.`]),
    ...unsetVariables(config.mcp, 'mcp', env),
    ...unsetVariables(config.files, 'files', env),
  ]
}

/** Empty if the configuration has no models: the server then looks for some when it starts. */
async function unavailableModels(config: Config, env: CliContext['env']): Promise<string[]> {
  if (Object.keys(config.models).length === 0) return []
  const [{ openCatalogue }, { demoEntry }] = await Promise.all([
    import('../models/catalogue.ts'),
    import('../demo/catalogue-entry.ts'),
  ])
  const catalogue = await openCatalogue({ ...config, env, demoEntry, log: { warn() {} } })
  await catalogue.close()
  return catalogue.describe().flatMap(({ unavailable }) => unavailable ?? [])
}

/** Finds settings whose name ends in `Env`: they hold the name of a variable, or a map of names. */
function unsetVariables(value: unknown, path: string, env: CliContext['env'], named = false): string[] {
  if (typeof value === 'string') {
    return named && !env[value]?.trim() ? [`${path} names the environment variable ${value}, which is not set.`] : []
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, part]) =>
    unsetVariables(part, `${path}.${key}`, env, named || key.endsWith('Env')),
  )
}
