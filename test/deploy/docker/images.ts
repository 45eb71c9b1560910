/**
 * The image of Errand, built on a Docker that has no registry: what it is made from is made here, by mmdebstrap from
 * Debian's archive (kept for the next run) and from the Node of the checkout. Needs root.
 */
import { execFile, spawn } from 'node:child_process'
import { once as happened } from 'node:events'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PACK_LOCK, packagerEnv, ROOT, userEnv } from '../../package/install.ts'

const CACHE = '/var/cache/errand-tests'
const SUITE = 'trixie'
const run = promisify(execFile)

export interface Docker {
  /** Resolves with what it printed; throws with what it said where it failed. */
  (...args: readonly string[]): Promise<string>
  readonly env: NodeJS.ProcessEnv
}

export function dockerAt(dockerHost: string): Docker {
  const env = userEnv({ DOCKER_HOST: dockerHost })
  const command = async (...args: readonly string[]) => {
    const { stdout, stderr } = await run('docker', args, { env, maxBuffer: 64 * 1024 * 1024 })
    return args[0] === 'logs' ? stdout + stderr : stdout
  }
  return Object.assign(command, { env })
}

/** Debian slim as `errand-base`, and an image that has the checkout's Node where the public one has it, as `errand-node`. */
async function makeBases(docker: Docker): Promise<void> {
  if (await has(docker, 'errand-node')) return
  const tree = join(CACHE, `base-${SUITE}.tar`)
  const command = ['mmdebstrap', '--quiet', '--variant=minbase', '--include=ca-certificates', SUITE]
  await once(tree, [...command, `${tree}.new.tar`], `${tree}.new.tar`)
  await docker('import', tree, 'errand-base')
  await build(docker, 'errand-node', 'FROM scratch\nCOPY node /usr/local/bin/node\n', { node: process.execPath })
}

/** By script/image, as a person does it, but for what it is made from. */
export function errandImage(docker: Docker): Promise<string> {
  return built(docker, 'errand:test', async (name) => {
    const bases = [
      '--build-arg',
      'BASE=errand-base',
      '--build-arg',
      'NODE=errand-node',
      '--network',
      'host',
      ...PROXIES,
    ]
    const command = [PACK_LOCK, join(ROOT, 'script/image'), name, ...bases]
    await run('flock', command, {
      env: packagerEnv({ DOCKER_HOST: docker.env.DOCKER_HOST! }),
      maxBuffer: 64 * 1024 * 1024,
    })
  })
}

/** Replaces the public image of Postgres. */
export function postgresImage(docker: Docker): Promise<string> {
  const text = `FROM errand-base
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
COPY start /usr/local/bin/start-postgres
ENTRYPOINT ["sh", "/usr/local/bin/start-postgres"]
`
  const files = { start: join(import.meta.dirname, 'start-postgres.sh') }
  return built(docker, 'errand-postgres', (name) => build(docker, name, text, files))
}

/** Replaces versitygw by s3rver, which the tests of the file store use too. */
export function s3Image(docker: Docker): Promise<string> {
  const text = `FROM errand-base
RUN apt-get update && apt-get install -y --no-install-recommends libstdc++6
COPY --from=errand-node /usr/local/bin/node /usr/local/bin/node
COPY modules /opt/s3/
COPY versitygw /usr/local/bin/versitygw
RUN chmod +x /usr/local/bin/versitygw
`
  return built(docker, 'errand-s3', (name) =>
    inDirectory(async (modules) => {
      const flags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
      await run('npm', ['install', ...flags, 's3rver@3.7.1'], { cwd: modules, env: packagerEnv() })
      await build(docker, name, text, { modules, versitygw: join(import.meta.dirname, 'start-s3.sh') })
    }),
  )
}

/** Debian's `docker compose`, of a suite that has the second one. Resolves with the program. */
export async function composeProgram(): Promise<string> {
  const tree = join(CACHE, `compose-${SUITE}`)
  const command = ['mmdebstrap', '--quiet', '--variant=extract', '--include=docker-compose', SUITE]
  await once(tree, [...command, `${tree}.new`], `${tree}.new`)
  return join(tree, 'usr/libexec/docker/cli-plugins/docker-compose')
}

/** Makes `place` by a command that makes `fresh`, unless another test run did: kept for the next one. */
async function once(place: string, command: readonly string[], fresh: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const script = '[ -e "$0" ] || { rm -rf "$1"; fresh=$1; shift; "$@" && mv "$fresh" "$0"; }'
  await run('flock', [`${place}.lock`, 'sh', '-c', script, place, fresh, ...command])
}

/** Builds an image unless this Docker has it: once for all tests, in whichever of their processes. */
async function built(docker: Docker, name: string, make: (name: string) => Promise<void>): Promise<string> {
  await alone('bases', () => makeBases(docker))
  await alone(name, async () => {
    if (!(await has(docker, name))) await make(name)
  })
  return name
}

async function has(docker: Docker, name: string): Promise<boolean> {
  return (await docker('images', '--quiet', name)).trim() !== ''
}

/** One at a time of that name, over all processes. */
async function alone(name: string, act: () => Promise<void>): Promise<void> {
  const lock = join(ROOT, 'node_modules', `.errand-image-${name}`)
  const held = spawn('flock', [lock, 'sh', '-c', 'echo; exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] })
  await happened(held.stdout, 'data')
  try {
    await act()
  } finally {
    held.stdin.end()
  }
}

/** Proxy for Debian's archive, if the machine has one. */
const PROXIES = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) =>
  process.env[name] ? ['--build-arg', `${name}=${process.env[name]}`] : [],
)

async function build(docker: Docker, name: string, text: string, files: Record<string, string>): Promise<void> {
  await inDirectory(async (place) => {
    for (const [target, source] of Object.entries(files)) await cp(source, join(place, target), { recursive: true })
    await writeFile(join(place, 'Dockerfile'), text)
    await docker('build', '--network', 'host', ...PROXIES, '--tag', name, place)
  })
}

export async function inDirectory<T>(use: (place: string) => Promise<T>): Promise<T> {
  const place = await mkdtemp(join(tmpdir(), 'errand-image-'))
  try {
    return await use(place)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}
