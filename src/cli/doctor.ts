/**
 * `errand doctor`: what this machine gives and what to do about what it does not. Each line is `ok`, `warn` or `fail`;
 * with a `fail` the server could not serve, and the exit code is 1. It tries the real parts, as a
 * command beside a server that may run.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, statfsSync } from 'node:fs'
import { createServer } from 'node:net'
import { arch, cpus, platform, release, totalmem } from 'node:os'
import type { Errand } from '../compose.ts'
import { describeBlobs } from '../config/blobs-url.ts'
import { isLoopback } from '../config/loopback.ts'
import type { Config } from '../config.ts'
import { VERSION } from '../domain/version.ts'
import { DRIVERS } from '../sandbox/drivers.ts'
import type { SandboxFacts } from '../sandbox/port.ts'
import { NO_ROW_SECURITY } from '../store/postgres/postgres.ts'
import { aboutModels } from './about-models.ts'
import { type CliContext, Exit, paint, printable } from './context.ts'
import { createLog } from './log.ts'
import { type ConfigOption, dataDirProblem, listenProblem, loadConfig, startErrand } from './start.ts'

type Grade = 'ok' | 'warn' | 'fail'

interface Finding {
  readonly grade: Grade
  readonly text: string
}

const ok = (text: string): Finding => ({ grade: 'ok', text })
const warn = (text: string): Finding => ({ grade: 'warn', text })
const fail = (text: string): Finding => ({ grade: 'fail', text })

const GIB = 1024 ** 3

/** The process's exit code. */
export async function doctor(context: CliContext, options: ConfigOption): Promise<number> {
  let failed = false
  function report(title: string, findings: readonly Finding[]): void {
    context.out.write(`\n${paint(context.out, 'bold', title)}\n`)
    for (const { grade, text } of findings) {
      failed ||= grade === 'fail'
      context.out.write(
        `  ${paint(context.out, COLORS[grade], grade.padEnd(4))}  ${printable(text).replaceAll('\n', '\n        ')}\n`,
      )
    }
  }
  context.out.write(`Errand ${VERSION}\n`)
  const config = configuration(context, options)
  const driver = config instanceof Exit ? 'bubblewrap' : config.sandbox.driver
  const needed = DRIVERS[driver].programs.map(({ name, debianPackage }) => command(name, debianPackage))
  report('Machine', [node(), system(), ...needed, cgroups()])
  if (config instanceof Exit) {
    report('Configuration', [fail(config.message)])
    return 1
  }
  report('Configuration', [ok('errand.yaml and the environment are valid')])
  report('Server', [dataDir(config), space(config), await port(config)])
  for (const [title, findings] of await parts(context, config)) report(title, findings)
  context.out.write(
    failed ? '\nThe server cannot run here until you fix what is marked `fail`.\n' : '\nThe server can run here.\n',
  )
  return failed ? 1 : 0
}

const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const

function node(): Finding {
  const major = Number(process.versions.node.split('.')[0])
  if (major >= 24) return ok(`Node ${process.versions.node}`)
  return fail(`Node ${process.versions.node}; Errand needs 24 or newer. See https://nodejs.org/.`)
}

function system(): Finding {
  const cores = cpus().length
  const text = `${platform()} ${release()} ${arch()}, ${cores} core${cores === 1 ? '' : 's'}, ${(totalmem() / GIB).toFixed(1)} GiB of memory`
  return platform() === 'linux' ? ok(text) : fail(`${text}; sandboxes need Linux.`)
}

function database({ dialect, hasRowSecurity }: Errand['database']): Finding {
  if (dialect === 'sqlite') return ok('SQLite in the data directory')
  return hasRowSecurity ? ok('Postgres, which keeps projects apart by row-level security') : warn(NO_ROW_SECURITY)
}

/** Searches the directories that the sandbox searches, not the user's PATH. */
function command(name: string, debianPackage: string): Finding {
  try {
    const env = { PATH: '/usr/bin:/usr/local/bin:/bin' }
    return ok(execFileSync(name, ['--version'], { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim())
  } catch {
    return fail(`${name} is not installed. On Debian and Ubuntu: apt-get install -y ${debianPackage}.`)
  }
}

function cgroups(): Finding {
  if (existsSync('/sys/fs/cgroup/cgroup.controllers')) return ok('cgroup v2')
  if (existsSync('/sys/fs/cgroup/memory')) return ok('cgroup v1')
  return warn('No cgroups at /sys/fs/cgroup: limits on memory, CPU and processes cannot be enforced.')
}

function configuration(context: CliContext, options: ConfigOption): Config | Exit {
  try {
    return loadConfig(context, options)
  } catch (error) {
    if (error instanceof Exit) return error
    throw error
  }
}

function dataDir(config: Config): Finding {
  const problem = dataDirProblem(config.dataDir)
  return problem === undefined ? ok(`The data directory ${config.dataDir} is writable`) : fail(problem)
}

function space(config: Config): Finding {
  if (!existsSync(config.dataDir)) return warn('The free space for data could not be checked.')
  const { bavail, bsize } = statfsSync(config.dataDir)
  const free = (bavail * bsize) / GIB
  const text = `${free.toFixed(1)} GiB free there`
  return free >= 1 ? ok(text) : warn(`${text}, which is little: each run can store files.`)
}

async function port(config: Config): Promise<Finding> {
  const { host, port } = config
  const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ host, port }, () => probe.close(() => resolve(undefined)))
  })
  if (error === undefined) {
    return ok(`Port ${port} on ${host} is free${isLoopback(host) ? '; only this machine can reach it' : ''}`)
  }
  // The port may be in use by this server itself.
  if (error.code === 'EADDRINUSE' && (await answersAsErrand(config))) {
    return ok(`Errand is already running on port ${port}`)
  }
  return fail(listenProblem(error, config) ?? `${host}:${port}: ${error.message}`)
}

async function answersAsErrand({ host, port, tls }: Config): Promise<boolean> {
  const name = host.includes(':') ? `[${host}]` : host
  const answer = await fetch(`${tls ? 'https' : 'http'}://${name}:${port}/openapi.json`, {
    signal: AbortSignal.timeout(2000),
  })
    .then((response) => response.text())
    .catch(() => '')
  return answer.includes('/v1beta/interactions')
}

/** Opens what a run needs, as `errand run` does, and reports on it. */
async function parts(context: CliContext, config: Config): Promise<[title: string, findings: Finding[]][]> {
  const options = { log: createLog('silent', context.err), mode: 'one-shot', env: context.env } as const
  try {
    const errand = await startErrand(config, options)
    try {
      return [
        ['Database', [database(errand.database)]],
        ['Isolation', isolation(errand.facts.sandbox)],
        ...(errand.nodes.length > 0 ? [['Nodes', nodes(errand)] as [string, Finding[]]] : []),
        ['Files', files(config)],
        ['Models', models(aboutModels(errand.catalogue.describe()), config.demo)],
        ['Tools', tools(errand)],
      ]
    } finally {
      await errand.close(0)
    }
  } catch (error) {
    if (!(error instanceof Exit)) throw error
    return [['Isolation', [fail(error.message), warn('Models and tools were not checked.')]]]
  }
}

function files({ blobs, files: named }: Config): Finding[] {
  const opened = (['s3', 'gs'] as const).flatMap((scheme) => {
    const places = [...new Set(Object.values(named[scheme].allow).flat())]
    return places.length === 0 ? [] : [ok(`Callers can name files by ${scheme}:// in ${places.join(', ')}`)]
  })
  return [ok(`Stored ${describeBlobs(blobs)}, which is writable`), ...opened]
}

function isolation({ driver, made, enforced, notEnforced, probes }: SandboxFacts): Finding[] {
  const open = probes.filter(({ refused }) => !refused)
  return [
    ok(`Driver ${driver}${made ? `, sandboxes ${made}` : ''}`),
    ...enforced.map(ok),
    ...notEnforced.map((text) => warn(`Not enforced: ${text}`)),
    // The driver started although these attacks succeeded, and gave the reason. Any other success keeps it from starting.
    ...open.map(({ name, detail }) => warn(`The sandbox does not block: ${name}${detail ? `: ${detail}` : ''}`)),
    ...(probes.length > 0
      ? [ok(`${refusedOf(probes.length, open.length)} attacks of the self-test were blocked`)]
      : []),
  ]
}

function refusedOf(all: number, open: number): string {
  return open === 0 ? `All ${all}` : `${all - open} of ${all}`
}

function models(about: ReturnType<typeof aboutModels>, demo: boolean): Finding[] {
  const found = about.map(({ text, problem }) => (problem ? warn(`${text}: ${problem}`) : ok(text)))
  if (about.some(({ problem }) => !problem)) return found
  return [
    ...found,
    warn(demo ? 'No model can be called.' : 'No model can be called, and ERRAND_DEMO is off: runs fail with 503.'),
  ]
}

/** Nodes on the same Postgres database. */
function nodes({ nodes }: Errand): Finding[] {
  return nodes.map(({ role, version, startedAt }) => {
    const text = `Node with the role ${role}, running since ${new Date(startedAt).toISOString()}`
    return version === VERSION ? ok(text) : warn(`${text}, version ${version}, which is not this version`)
  })
}

function tools({ facts, search }: Errand): Finding[] {
  const { tools: available, missingTools, sandbox } = facts
  return [
    ok(`Available: ${available.join(', ')}`),
    ...missingTools.map(({ name, remedy }) =>
      warn(`Not available: ${name}. A run that names it gets a warning. ${remedy}`),
    ),
    ...(available.includes('web_search') ? [ok(`Web search: ${search}`)] : []),
    ...(sandbox.browser === undefined ? [] : [ok(`Browser: ${sandbox.browser}`)]),
    ok(`Inside a sandbox: ${sandbox.inside}`),
  ]
}
