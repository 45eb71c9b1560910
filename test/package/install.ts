/** Packs and installs packages as a user does: by npm and pip, from the packed files only, in separate directories. */
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
export const ROOT = resolve(import.meta.dirname, '../..')

/** The environment of a user's shell: none of the test's own settings, and this Node. */
export function userEnv(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { HOME, LANG, PATH, TMPDIR } = process.env
  const node = join(process.execPath, '..')
  return { HOME, LANG, TMPDIR, PATH: `${node}:${PATH}`, NO_COLOR: '1', npm_config_loglevel: 'error', ...extra }
}

/** Variables that vitest sets, and settings of servers: neither belongs to the machine. */
const OF_THE_TESTS = /^(NODE_ENV|VITEST.*|TEST|DEV|PROD|SSR|MODE|BASE_URL|ERRAND_.*)$/

/**
 * The environment for package managers and builds: all that the machine sets (proxies, certificates, registries, caches), and
 * this Node. Without it they fail on machines that reach their registries with settings of their own.
 */
export function packagerEnv(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const ofTheMachine = Object.entries(process.env).filter(([name]) => !OF_THE_TESTS.test(name))
  return { ...Object.fromEntries(ofTheMachine), ...userEnv(extra) }
}

/** Lock that is held while dist/ of the checkout is built and packed, because several tests do that. */
export const PACK_LOCK = join(ROOT, 'node_modules/.errand-pack')

/** `npm pack` in that directory. Resolves with the packed file. */
export async function npmPack(directory: string, destination: string): Promise<string> {
  const command = [PACK_LOCK, 'npm', 'pack', '--pack-destination', destination]
  await run('flock', command, { cwd: directory, env: packagerEnv() })
  const packed = (await readdir(destination)).filter((name) => name.endsWith('.tgz'))
  if (packed.length !== 1) throw new Error(`npm pack made ${packed.join(', ') || 'nothing'}.`)
  return join(destination, packed[0]!)
}

/** `npm install FILE` in an empty directory. Dependencies come from npm's cache if they are there. */
export async function npmInstall(directory: string, packed: string): Promise<void> {
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  await run('npm', ['install', ...flags, packed], { cwd: directory, env: packagerEnv() })
}
