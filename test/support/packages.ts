/**
 * Programs from npm and PyPI that only tests need: pinned, installed on first use, and kept in node_modules. They are
 * no devDependencies, so a checkout that runs no tests does not install them.
 */
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const HOME = resolve(import.meta.dirname, '../../node_modules/.errand-packages')
const run = promisify(execFile)

/**
 * Installs npm packages such as `deno@2.9.6`, without install scripts. Resolves with the directory that contains their
 * node_modules.
 */
export async function npmPackages(...packages: readonly string[]): Promise<string> {
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  return installOnce(packages, (directory) => ['npm', 'install', '--prefix', directory, ...flags, ...packages])
}

/**
 * Installs PyPI packages such as `openapi-python-client==0.29.1` for Debian's Python. Resolves with a directory for
 * PYTHONPATH.
 */
export async function pythonPackages(...packages: readonly string[]): Promise<string> {
  const flags = ['--quiet', '--disable-pip-version-check', '--no-warn-script-location', '--only-binary', ':all:']
  return installOnce(packages, (directory) => [
    ...['/usr/bin/python3', '-m', 'pip', 'install', '--target', directory],
    ...flags,
    ...packages,
  ])
}

/** Installs once, under a lock: concurrent tests wait. An interrupted installation is repeated. */
async function installOnce(
  packages: readonly string[],
  command: (directory: string) => readonly string[],
): Promise<string> {
  const directory = join(HOME, packages.join(',').replaceAll('/', '+'))
  mkdirSync(HOME, { recursive: true })
  const install =
    'directory=$1; shift; [ -e "$directory/.complete" ] || { rm -rf "$directory"; mkdir "$directory"; "$@"; touch "$directory/.complete"; }'
  // Passes the whole environment: a registry may need a proxy or its own certificates.
  await run('flock', [`${directory}.lock`, 'sh', '-ec', install, 'sh', directory, ...command(directory)], {
    env: process.env,
    maxBuffer: 16 * 1024 * 1024,
  })
  return directory
}
